#include "core/plan/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

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

TEST_F(FindProgramTest, OffersNoModeForWhatIsNoProgram) {
  const auto advice = [&](const char* name, const char* text) {
    std::ofstream(folder_ / name) << text;
    return FindProgram(name, "/nowhere", folder_.string()).error().text;
  };
  EXPECT_THAT(advice("prog.c", "int main() {}\n"), HasSubstr("it is source code: compile it"));
  EXPECT_THAT(advice("job.tml", "# mine\n\n[job]\n"), HasSubstr("for a config, write dtrun -c job.tml"));
  EXPECT_THAT(advice("run.sh", "#!/bin/sh\n"),
              HasSubstr("run 'chmod +x run.sh', and write ./run.sh, or put its "
                        "shell in front: bash run.sh"));
  EXPECT_THAT(advice("other.sh", "echo\n"),
              HasSubstr("not executable; put its shell in front: bash other.sh"));
  EXPECT_THAT(advice("notes", "x\n"),
              HasSubstr("no #! line: put its interpreter in front, as in python3 notes"));
}

TEST_F(FindProgramTest, RefusesAFolder) {
  for (const std::string& program : {folder_.string() + "/", std::string("."), std::string("..")}) {
    EXPECT_THAT(FindProgram(program, "/nowhere", folder_.string()).error().text,
                HasSubstr("': it is a folder; name a program in it"));
  }
  fs::create_directories(folder_ / "model");
  EXPECT_THAT(FindProgram("model", "/nowhere", folder_.string()).error().text,
              HasSubstr("' is a folder; name a program in it"));
}

TEST_F(FindProgramTest, SaysWhatIsNoFile) {
  fs::create_symlink("nowhere", folder_ / "gone.py");
  fs::create_symlink("loop.py", folder_ / "loop.py");
  ASSERT_EQ(::mkfifo((folder_ / "pipe.py").c_str(), 0600), 0);
  for (const auto& [name, kind] :
       {std::pair("gone.py", "is a link to 'nowhere', which does not exist"),
        std::pair("loop.py", "is a link that leads back to itself"), std::pair("pipe.py", "is a pipe")}) {
    const std::string expected = std::string(kind) + "; name a program";
    EXPECT_THAT(FindProgram(name, "/nowhere", folder_.string()).error().text, HasSubstr(expected));
    EXPECT_THAT(FindProgram((folder_ / name).string(), "/nowhere", "/").error().text, HasSubstr(expected));
  }
}

TEST_F(FindProgramTest, DoesNotExpandAsAShell) {
  ::setenv("HOME", "/home/me", 1);
  for (const char* program : {"~/x.sh", "$HOME/x.sh"}) {
    EXPECT_THAT(FindProgram(program, "", "/").error().text,
                HasSubstr("is not expanded in job.command; write /home/me/x.sh"));
  }
}

TEST_F(FindProgramTest, SaysWhereItLooked) {
  EXPECT_THAT(FindProgram("run", "/nowhere", "/").error().text, HasSubstr("(PATH: /nowhere)"));
  EXPECT_THAT(FindProgram("python3 a.py", "/nowhere", "/").error().text,
              HasSubstr("[\"python3\", \"train.py\"]"));
  EXPECT_THAT(FindProgram("DB_PASSWORD=sekret1", "/nowhere", "/").error().text,
              HasSubstr("program 'DB_PASSWORD=(secret)'"));
}

TEST_F(FindProgramTest, NamesTheProgramThatItMayBeASlipOf) {
  const fs::path bin = folder_ / "bin", here = folder_ / "here";
  fs::create_directories(here);
  fs::create_directories(bin);
  for (const char* name : {"python3", "python2", "prun", "true"}) {
    std::ofstream(bin / name) << "#!/bin/sh\n";
    fs::permissions(bin / name, fs::perms::owner_all);
  }
  const auto told = [&](const std::string& name) {
    return FindProgram(name, bin.string(), here.string()).error().text;
  };
  EXPECT_THAT(told("python"), HasSubstr("; did you mean 'python3'?"));
  EXPECT_THAT(told("pyhton3"), HasSubstr("; did you mean 'python3'?"));
  EXPECT_THAT(told("pro"), HasSubstr("there is no such file")) << "a short name is near to many";
  std::ofstream(here / "pyhton3.py") << "";
  EXPECT_THAT(told("pyhtn3.py"), HasSubstr("; did you mean the file 'pyhton3.py'?"));
}

TEST(CheckFolder, NamesAFolderWithControlCharactersAndWhatChoosesAnother) {
  spec::Request request;
  request.command = {"true"};
  const spec::JobSpec here = spec::Load(request, nullptr).spec;
  EXPECT_TRUE(CheckFolder(here, "/data/my run é"));
  for (const std::string name : {"/data/a\tb", "/data/a\nb", "/data/a\x7f"})
    EXPECT_FALSE(CheckFolder(here, name));
  EXPECT_EQ(
      CheckFolder(here, "/data/a\tb").error().text,
      "the ranks' folder '/data/a\\u0009b' has control characters in its name; start dtrun from another "
      "folder, or set job.cwd to one");
  request.sets = {"job.cwd=/data"};
  EXPECT_THAT(CheckFolder(spec::Load(request, nullptr).spec, "/data/a\tb").error().text,
              ::testing::EndsWith("control characters in its name; name another folder"));
}

}  // namespace
}  // namespace dtrun::plan
