// The real libnccl, as far as it goes without a device: versions, the interface that a unique
// id carries, errors. Skipped where there is none; NCCL_LIBRARY of the build, or the loader,
// says where it is.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "child.h"
#include "core/failures/finding.h"
#include "plugins/nccl/nccl_api.h"
#include "sdk/conformance/subject.h"

namespace dtrun::nccl_test {
namespace {

using conformance::Outcome;
using conformance::Subject;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// The plugin over it; every case looks at it in a child, as NCCL reads its environment once.
class NcclLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string file = LibraryFile();
    if (file.empty() && dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL) == nullptr) {
      GTEST_SKIP() << "this machine has no libnccl.so.2; set NCCL_LIBRARY when configuring";
    }
    backend_.plugin = PluginFile();
    if (!file.empty()) backend_.options["library"] = file;
  }

  // The fact where NCCL_SOCKET_IFNAME is `names`.
  std::string Fact(const char* key, const char* names = "=lo") const {
    return InChild([&] {
      setenv("NCCL_SOCKET_IFNAME", names, 1);
      return Subject(backend_).LaunchInfo(1).facts.at(key);
    });
  }

  conformance::BackendUnderTest backend_;
};

TEST_F(NcclLibrary, IsReportedWithVersionAndPath) {
  EXPECT_THAT(Fact("library"), StartsWith("NCCL 2."));
  EXPECT_THAT(Fact("library_path"), HasSubstr("libnccl"));
}

TEST_F(NcclLibrary, TellsTheInterfaceItChose) {
  EXPECT_EQ(Fact("interface"), "lo 127.0.0.1 (chosen by NCCL)");
}

TEST_F(NcclLibrary, ExplainsThatNoInterfaceIsLeft) {
  EXPECT_THAT(
      Fact("interface", "=nosuch0"),
      AllOf(StartsWith("none: "), HasSubstr("no socket interface found"), HasSubstr("`dtrun explain`")));
}

// What the library says here is among the failures that dtrun knows.
TEST_F(NcclLibrary, SaysWhatIsKnown) {
  const auto ids = [](const std::string& text) {
    std::vector<std::string> found;
    for (const failures::Finding& finding : failures::FindFailures(text))
      found.push_back(finding.failure->id);
    return found;
  };
  EXPECT_THAT(ids(Fact("interface", "=nosuch0")), Contains("nccl-no-interface"));
  const auto with_id = [&](const char* address) {
    return InChild([&] {
      setenv("NCCL_COMM_ID", address, 1);
      return Subject(backend_).LaunchInfo(1).facts.at("interface");
    });
  };
  EXPECT_THAT(ids(with_id("203.0.113.9:4711")), Contains("nccl-comm-id-elsewhere"));
  EXPECT_THAT(ids(with_id("nowhere")), Contains("nccl-comm-id-form"));
  const std::string memory = InChild([] {
    const std::string file = REAL_NCCL_FILE;
    const nccl_plugin::NcclApi api(file);
    void* block = nullptr;
    if (api.mem_alloc == nullptr || api.mem_alloc(&block, 4096) == nccl_plugin::nccl::kSuccess)
      return std::string();
    return std::string(api.get_last_error(nullptr));
  });
  if (!memory.empty()) {
    EXPECT_THAT(ids(memory), Not(IsEmpty())) << memory;
  }
}

TEST_F(NcclLibrary, WithoutADeviceRefusesACommunicatorInOneSentence) {
  const std::string device = Fact("device");
  if (device.rfind("none: ", 0) != 0) GTEST_SKIP() << "this machine has " << device;
  const std::string refusal = InChild([&] {
    const Subject subject(backend_);
    conformance::ThreadKv kv;
    Outcome outcome;
    return subject.Join(&kv, 0, 1, conformance::kPatience, &outcome) == nullptr ? outcome.text : "it joined";
  });
  EXPECT_EQ("none: " + refusal, device);
  EXPECT_THAT(refusal, AnyOf(HasSubstr("this process has none"), HasSubstr("cannot load the CUDA runtime")));
}

}  // namespace
}  // namespace dtrun::nccl_test
