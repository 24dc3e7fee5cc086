#include "core/plan/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace dtrun::plan {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FindProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "dtrun-command-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    for (const char* name : {"run", "plain"}) std::ofstream(folder_ / name) << "#!/bin/sh\n";
    fs::permissions(folder_ / "run", fs::perms::owner_all);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(FindProgramTest, TakesAPathFromTheWorkingDirectory) {
  EXPECT_EQ(*FindProgram("./run", "", folder_.string()), (folder_ / "run").string());
}

TEST_F(FindProgramTest, SearchesPathInOrder) {
  EXPECT_EQ(*FindProgram("run", "/nowhere:" + folder_.string(), "/"), (folder_ / "run").string());
}

TEST_F(FindProgramTest, NamesTheFileThatIsMissing) {
  EXPECT_THAT(FindProgram("./absent", "", folder_.string()).error().text,
              HasSubstr("/absent': no such file or directory"));
}

TEST_F(FindProgramTest, ExplainsAFileThatIsNotExecutable) {
  EXPECT_THAT(FindProgram("./plain", "", folder_.string()).error().text, HasSubstr("chmod +x"));
  EXPECT_THAT(FindProgram("plain", folder_.string(), "/").error().text, HasSubstr("chmod +x"));
}

TEST_F(FindProgramTest, RefusesAFolder) {
  EXPECT_THAT(FindProgram(folder_.string() + "/", "", "/").error().text, HasSubstr("it is a folder"));
}

TEST_F(FindProgramTest, SaysWhereItLooked) {
  EXPECT_THAT(FindProgram("run", "/nowhere", "/").error().text, HasSubstr("in PATH (/nowhere)"));
  EXPECT_THAT(FindProgram("python3 a.py", "/nowhere", "/").error().text,
              HasSubstr("[\"python3\", \"train.py\"]"));
  EXPECT_THAT(FindProgram("DB_PASSWORD=sekret1", "/nowhere", "/").error().text,
              HasSubstr("program 'DB_PASSWORD=(secret)'"));
}

}  // namespace
}  // namespace dtrun::plan
