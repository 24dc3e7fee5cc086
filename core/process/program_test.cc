#include "core/process/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "core/process/testing.h"

namespace dtrun::process {
namespace {

using ::testing::HasSubstr;

std::string Put(const testing::ScratchDir& dir, const std::string& name, const std::string& content,
                mode_t mode) {
  std::string path = dir / name;
  std::ofstream(path) << content;
  ::chmod(path.c_str(), mode);
  return path;
}

TEST(FindProgram, KeepsANameWithASlash) { EXPECT_EQ(*FindProgram("./train", "/nowhere", {}), "./train"); }

TEST(FindProgram, TakesTheFirstExecutableAlongThePath) {
  testing::ScratchDir first, second;
  Put(first, "train", "", 0644);
  const std::string wanted = Put(second, "train", "", 0755);
  EXPECT_EQ(*FindProgram("train", "/", {"PATH=" + first.path().string() + ":" + second.path().string()}),
            wanted);
}

TEST(FindProgram, ReadsRelativeFoldersOfThePathFromTheFolderOfTheRank) {
  testing::ScratchDir dir;
  std::filesystem::create_directory(dir / "bin");
  Put(dir, "bin/train", "", 0755);
  EXPECT_EQ(*FindProgram("train", dir.path().string(), {"PATH=bin"}), dir / "bin/train");
}

TEST(FindProgram, NamesAFileThatIsOnlyNotExecutable) {
  testing::ScratchDir dir;
  const std::string path = Put(dir, "train", "", 0644);
  EXPECT_THAT(FindProgram("train", "/", {"PATH=" + dir.path().string()}).error().text,
              HasSubstr("run: chmod +x '" + path + "'"));
}

TEST(FindProgram, NamesTheOptionThatNamesTheProgram) {
  EXPECT_THAT(FindProgram("no-such-shell", "/", {"PATH=/bin"}, "cluster.remote_shell").error().text,
              HasSubstr("check cluster.remote_shell"));
  EXPECT_THAT(FindProgram("no-such-train", "/", {"PATH=/bin"}).error().text, HasSubstr("check job.command"));
}

TEST(ExplainExec, KnowsForeignBinaries) {
  testing::ScratchDir dir;
  Put(dir, "train",
      "\x7f"
      "ELF...",
      0755);
  EXPECT_THAT(ExplainExec("./train", "./train", dir.path().string(), ENOEXEC),
              HasSubstr("another kind of machine"));
  EXPECT_THAT(ExplainExec("./train", "./train", dir.path().string(), ENOENT), HasSubstr("loader"));
}

TEST(ExplainExec, KeepsTheSystemsWordsForTheRest) {
  EXPECT_EQ(ExplainExec("./train", "./train", "/", ETXTBSY), "cannot run './train': text file busy");
  EXPECT_THAT(ExplainExec("./train", "./train", "/", E2BIG), HasSubstr("too long"));
}

}  // namespace
}  // namespace dtrun::process
