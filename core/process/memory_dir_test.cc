#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "core/process/runtime_dir.h"
#include "core/process/testing.h"

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class MemoryDirTest : public ::testing::Test {
 protected:
  MemoryDirTest() : lock_(MakeRuntimeDir(dir_).value()) {}
  ~MemoryDirTest() override { RemoveRuntimeDir(dir_); }

  testing::ScratchDir scratch_;
  const fs::path dir_ = scratch_.path() / "dtrun-0123456789ab";
  const UniqueFd lock_;
};

TEST_F(MemoryDirTest, IsPrivateAndTheSameForAllProcessesOfTheJob) {
  const fs::path folder = MakeMemoryDir(dir_).value();
  struct stat info {};
  ASSERT_EQ(::lstat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_EQ(info.st_uid, ::geteuid());
  EXPECT_EQ(MakeMemoryDir(dir_).value(), folder);
}

TEST_F(MemoryDirTest, HasANameThatThePrivateFoldersDoesNotTell) {
  const fs::path folder = MakeMemoryDir(dir_).value();
  EXPECT_EQ(folder.parent_path(), "/dev/shm");
  EXPECT_EQ(folder.filename().string().find("0123456789ab"), std::string::npos);
  EXPECT_GE(folder.filename().string().size(), 38u);
}

TEST_F(MemoryDirTest, IsRemovedWithThePrivateFolder) {
  const fs::path folder = MakeMemoryDir(dir_).value();
  std::ofstream(folder / "segment") << "x";
  RemoveRuntimeDir(dir_);
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_FALSE(fs::exists(dir_));
}

TEST_F(MemoryDirTest, IsRefusedWhenOthersCanEnterIt) {
  const fs::path folder = MakeMemoryDir(dir_).value();
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  EXPECT_THAT(MakeMemoryDir(dir_).error().text, HasSubstr("with mode 0777"));
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(folder.c_str(), 4242, 4242), 0);
  EXPECT_THAT(MakeMemoryDir(dir_).error().text, HasSubstr("belongs to user 4242"));
}

TEST_F(MemoryDirTest, IsNotFollowedElsewhere) {
  const fs::path elsewhere = scratch_.path() / "elsewhere";
  fs::create_directory(elsewhere);
  // A link replaces the folder.
  const fs::path folder = MakeMemoryDir(dir_).value();
  fs::remove(folder);
  fs::create_directory_symlink(elsewhere, folder);
  EXPECT_FALSE(MakeMemoryDir(dir_));
  fs::remove(folder);
  // The link in the private folder points outside /dev/shm.
  fs::remove(dir_ / "memory");
  fs::create_directory_symlink(elsewhere, dir_ / "memory");
  EXPECT_FALSE(MakeMemoryDir(dir_));
  RemoveRuntimeDir(dir_);
  EXPECT_TRUE(fs::exists(elsewhere));
}

}  // namespace
}  // namespace dtrun::process
