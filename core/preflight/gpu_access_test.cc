#include "core/preflight/gpu_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace dtrun::preflight {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A private /dev, checked as a non-root user.
class GpuAccess : public ::testing::Test {
 protected:
  GpuAccess() : root_(fs::path(::testing::TempDir()) / ("gpus-" + std::to_string(::getpid()))) {
    fs::create_directories(root_ / "dev");
    fs::permissions(root_, fs::perms::all);
    BeUser(65534);
  }
  ~GpuAccess() override {
    BeUser(0);
    fs::remove_all(root_);
  }
  // A user other than root cannot switch to another user.
  static void BeUser(uid_t user) {
    if (::getuid() == 0 && ::seteuid(user) != 0) ADD_FAILURE() << "cannot be user " << user;
  }
  void Make(const char* name, fs::perms mode) {
    BeUser(0);
    std::ofstream(root_ / "dev" / name) << "";
    fs::permissions(root_ / "dev" / name, mode);
    BeUser(65534);
  }
  fs::path root_;
};

TEST_F(GpuAccess, IsNoMatterWithoutGpus) {
  Make("nvidia-caps", fs::perms::none);
  EXPECT_EQ(ForbiddenGpu(root_), "");
  EXPECT_EQ(WithGpuAccess("no device", root_), "no device");
}

TEST_F(GpuAccess, NamesWhatIsForbiddenAndWhatToDo) {
  Make("nvidia0", fs::perms::all);
  EXPECT_EQ(ForbiddenGpu(root_), "");
  Make("nvidia1", fs::perms::none);
  EXPECT_EQ(ForbiddenGpu(root_), "this user may not open /dev/nvidia1 (permission denied)");
  EXPECT_THAT(
      WithGpuAccess("no device", root_),
      HasSubstr("no device; this user may not open /dev/nvidia1 (permission denied): add the user to"));
  EXPECT_EQ(WithGpuAccess("", root_), "");
  const std::string said = "no device, and this user may not open '/dev/nvidia1': Permission denied";
  EXPECT_EQ(WithGpuAccess(said, root_), said) << "not twice";
}

TEST_F(GpuAccess, LooksAtTheFileOfAmdToo) {
  Make("kfd", fs::perms::none);
  EXPECT_THAT(ForbiddenGpu(root_), HasSubstr("/dev/kfd"));
}

TEST_F(GpuAccess, AHostWithoutGpusNeedsNoAdvice) {
  const std::string why = "cannot load NCCL: no such file; install NCCL";
  EXPECT_FALSE(HasGpu(root_));
  EXPECT_EQ(ListedReason("nccl", why, root_), "this host has no GPU (cannot load NCCL: no such file)");
  EXPECT_EQ(ListedReason("ucx", why, root_), why);
  const auto add = [&](const char* device, const char* vendor, const char* kind) {
    const fs::path folder = root_ / "sys/bus/pci/devices" / device;
    fs::create_directories(folder);
    std::ofstream(folder / "vendor") << vendor << "\n";
    std::ofstream(folder / "class") << kind << "\n";
  };
  add("0000:00:01.0", "0x10de", "0x020000");  // a network card
  EXPECT_FALSE(HasGpu(root_));
  add("0000:00:02.0", "0x10de", "0x030200");  // without a driver
  EXPECT_TRUE(HasGpu(root_));
  EXPECT_EQ(ListedReason("nccl", why, root_), why);
}

}  // namespace
}  // namespace dtrun::preflight
