#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "plugins/cuda/cuda_api.h"

namespace dtrun::cuda {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class DeviceFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "dtrun-cuda-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path Add(const std::string& name, mode_t mode) {
    const fs::path file = folder_ / name;
    std::ofstream(file) << "x";
    EXPECT_EQ(chmod(file.c_str(), mode), 0);
    return file;
  }
  fs::path folder_;
};

TEST_F(DeviceFiles, ThatMayBeOpenedAreNotMentioned) {
  Add("nvidiactl", 0600);
  Add("nvidia0", 0600);
  EXPECT_FALSE(DeniedDeviceFile(folder_));
  EXPECT_FALSE(DeniedDeviceFile(folder_ / "nowhere"));
}

TEST_F(DeviceFiles, ThatMayNotBeOpenedAreNamed) {
  Add("nvidiactl", 0644);
  const fs::path denied = Add("nvidia3", 0000);
  Add("nvidia-uvm-tools", 0000);
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  const bool root = geteuid() == 0;  // who may open every file
  if (root) {
    ASSERT_EQ(chmod((folder_ / "nvidiactl").c_str(), 0666), 0);
    ASSERT_EQ(seteuid(65534), 0);
  }
  const std::optional<DeniedFile> problem = DeniedDeviceFile(folder_);
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->what,
              AllOf(HasSubstr("may not open '" + denied.string() + "'"), EndsWith("Permission denied")));
  EXPECT_THAT(problem->advice, HasSubstr("add the user to the group that owns the file"));
}

}  // namespace
}  // namespace dtrun::cuda
