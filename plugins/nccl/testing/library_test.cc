// The real libnccl, as far as it goes without a device: versions, the interface that a unique
// id carries, errors. Skipped where there is none; NCCL_LIBRARY of the build, or the loader,
// says where it is.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "sdk/conformance/subject.h"

namespace dtrun::nccl_test {
namespace {

using conformance::Outcome;
using conformance::Subject;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

// The case runs in a process of its own, as NCCL reads its environment once.
class NcclLibrary : public testing::Test {
 protected:
  void SetUp() override {
    const std::string file = REAL_NCCL_FILE;
    if (file.empty() && dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL) == nullptr) {
      GTEST_SKIP() << "this machine has no libnccl.so.2; set NCCL_LIBRARY when configuring";
    }
    backend_.plugin = NCCL_PLUGIN_FILE;
    if (!file.empty()) backend_.options["library"] = file;
  }

  conformance::BackendUnderTest backend_;
};

TEST_F(NcclLibrary, IsReportedWithVersionAndPath) {
  const Subject::Launch launch = Subject(backend_).LaunchInfo(1);
  EXPECT_THAT(launch.facts.at("library"), StartsWith("NCCL 2."));
  EXPECT_THAT(launch.facts.at("library_path"), HasSubstr("libnccl"));
}

TEST_F(NcclLibrary, TellsTheInterfaceItChose) {
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  EXPECT_EQ(Subject(backend_).LaunchInfo(1).facts.at("interface"), "lo 127.0.0.1 (chosen by NCCL)");
}

TEST_F(NcclLibrary, ExplainsThatNoInterfaceIsLeft) {
  setenv("NCCL_SOCKET_IFNAME", "=nosuch0", 1);
  EXPECT_THAT(Subject(backend_).LaunchInfo(1).facts.at("interface"),
              AllOf(StartsWith("none: "), HasSubstr("no socket interface found"),
                    HasSubstr("correct backend.options.interface or NCCL_SOCKET_IFNAME")));
}

TEST_F(NcclLibrary, WithoutADeviceRefusesACommunicatorInOneSentence) {
  const Subject subject(backend_);
  const std::string device = subject.LaunchInfo(1).facts.at("device");
  if (device.rfind("none: ", 0) != 0) GTEST_SKIP() << "this machine has " << device;
  conformance::ThreadKv kv;
  Outcome outcome;
  EXPECT_EQ(subject.Join(&kv, 0, 1, conformance::kPatience, &outcome), nullptr);
  EXPECT_EQ("none: " + outcome.text, device);
  EXPECT_THAT(outcome.text,
              AnyOf(HasSubstr("this process has none"), HasSubstr("cannot load the CUDA runtime")));
}

}  // namespace
}  // namespace dtrun::nccl_test
