#include "core/base/program_files.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>

namespace dtrun {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class ProgramFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "dtrun-programs-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    for (const char* const part : {"plain", "bin"}) {
      fs::create_directory(folder_ / part);
      std::ofstream(folder_ / part / "train") << "#!/bin/sh\n";
    }
    fs::permissions(folder_ / "bin/train", fs::perms::owner_all);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(ProgramFilesTest, NeitherFoldersNorFilesWithoutTheModeAreExecutable) {
  EXPECT_TRUE(IsExecutable(folder_ / "bin/train"));
  EXPECT_FALSE(IsExecutable(folder_ / "plain/train"));
  EXPECT_FALSE(IsExecutable(folder_ / "bin"));
  EXPECT_FALSE(IsExecutable(folder_ / "absent"));
}

TEST_F(ProgramFilesTest, PassesOverWhatIsNotExecutable) {
  EXPECT_EQ(FindOnPath("train", "plain:absent:bin", folder_), folder_ / "bin/train");
  EXPECT_EQ(FindOnPath("train", "plain", folder_), std::nullopt);
}

TEST_F(ProgramFilesTest, AnEmptyEntryIsTheWorkingDirectory) {
  for (const char* const path : {":/absent", "/absent:", "/absent::/gone"})
    EXPECT_EQ(FindOnPath("train", path, folder_ / "bin"), folder_ / "bin/train") << path;
}

TEST_F(ProgramFilesTest, ListsTheExecutableNamesThatBeginSo) {
  EXPECT_THAT(ProgramsWithPrefix("tr", "plain:absent:bin:bin", folder_), ElementsAre("train"));
  EXPECT_THAT(ProgramsWithPrefix("trap", "bin", folder_), IsEmpty());
  EXPECT_THAT(ProgramsWithPrefix("tr", "plain", folder_), IsEmpty());
}

TEST(FoldersOfPath, AreInOrderAndRelativeOnesBeginInTheWorkingDirectory) {
  EXPECT_THAT(FoldersOfPath("/a:b::/c", "/here"), ElementsAre("/a", "/here/b", "/here", "/c"));
  EXPECT_THAT(FoldersOfPath("", "/here"), IsEmpty());
}

}  // namespace
}  // namespace dtrun
