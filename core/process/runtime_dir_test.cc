#include "core/process/runtime_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/process/testing.h"

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class RuntimeDirTest : public ::testing::Test {
 protected:
  fs::path Name(const std::string& digits) const { return scratch_.path() / ("dtrun-" + digits); }

  testing::ScratchDir scratch_;
};

TEST_F(RuntimeDirTest, RemovesWhatAJobLeftThatWasKilledAsAWhole) {
  const fs::path left = Name("0123456789ab");
  { auto lock = MakeRuntimeDir(left).value(); }  // its owner is dead
  std::ofstream(left / "store") << "x";
  const fs::path memory = MakeMemoryDir(left).value();
  RemoveStale(Name("own"), seconds(60));
  EXPECT_TRUE(fs::exists(left)) << "it may have begun just now";
  RemoveStale(Name("own"), seconds(0));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(memory));
}

TEST_F(RuntimeDirTest, SparesAJobThatRunsAndFoldersOfOthers) {
  const UniqueFd lock = MakeRuntimeDir(Name("0123456789ab")).value();
  struct stat info {};
  ASSERT_EQ(::stat(Name("0123456789ab").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  fs::create_directory(Name("0123456789aX"));
  fs::create_directory(Name("my-own-work"));
  fs::create_directory_symlink(Name("my-own-work"), Name("ba9876543210"));
  RemoveStale(Name("own"), seconds(0));
  EXPECT_TRUE(fs::exists(Name("0123456789ab")));
  EXPECT_TRUE(fs::exists(Name("0123456789aX")));
  EXPECT_TRUE(fs::exists(Name("my-own-work")));
}

TEST_F(RuntimeDirTest, SparesWhatIsNotDtruns) {
  const fs::path unmarked = Name("0123456789ab"), empty = Name("0123456789ac"),
                 foreign = Name("0123456789ad");
  fs::create_directories(unmarked / "work");
  fs::create_directory(empty);
  { auto lock = MakeRuntimeDir(foreign).value(); }
  std::ofstream(foreign / "somebody") << "x";
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((foreign / "somebody").c_str(), 4242, 4242), 0);
  }
  RemoveStale(Name("own"), seconds(0));
  EXPECT_TRUE(fs::exists(unmarked / "work"));
  EXPECT_FALSE(fs::exists(empty));
  EXPECT_EQ(fs::exists(foreign), ::geteuid() == 0);
}

}  // namespace
}  // namespace dtrun::process
