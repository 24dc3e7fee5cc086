#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>  // mkdtemp

#include <fstream>

#include "core/plan/command.h"

namespace dtrun::plan {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() {
    std::string name = (fs::temp_directory_path() / "dtrun-program-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
    fs::create_directory(folder_ / "bin");
  }
  ~ProgramTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void Write(const std::string& name, const std::string& text, bool executable) {
    std::ofstream(folder_ / name) << text;
    fs::permissions(folder_ / name, executable ? fs::perms::owner_all : fs::perms::owner_read);
  }
  TypedProgram Typed(Words words) { return ProgramOf(std::move(words), (folder_ / "bin").string(), folder_); }

  fs::path folder_;
};

TEST_F(ProgramTest, APythonFileRunsByPython) {
  Write("train.py", "print()", false);
  const TypedProgram program = Typed({"train.py", "--epochs", "5"});
  EXPECT_EQ(program.command, (Words{"python3", "-u", "train.py", "--epochs", "5"}));
  EXPECT_THAT(program.assumed, HasSubstr("'train.py' is not executable: it is run as 'python3 -u train.py'"));
  EXPECT_EQ(Typed({"./train.py"}).command, (Words{"python3", "-u", "./train.py"}));
}

TEST_F(ProgramTest, AnExecutableOneRunsItselfWhenItNamesItsInterpreter) {
  Write("own.py", "#!/usr/bin/env python3\n", true);
  Write("bare.py", "print()", true);
  EXPECT_EQ(Typed({"./own.py"}).command, (Words{"./own.py"}));
  EXPECT_EQ(Typed({"own.py"}).command, (Words{"./own.py"}));
  EXPECT_EQ(Typed({"bare.py"}).command, (Words{"python3", "-u", "bare.py"}));
  EXPECT_THAT(Typed({"bare.py"}).assumed, HasSubstr("has no #! line"));
}

// Another user may have put a file into the current folder; a name that was not typed must not
// resolve to it.
TEST_F(ProgramTest, ThePythonOfARelativeFolderIsNotMeant) {
  Write("train.py", "print()", false);
  Write("python3", "#!/bin/sh\n", true);
  Write("bin/python3", "#!/bin/sh\n", true);
  const std::string python = (folder_ / "bin/python3").string();
  for (const std::string before : {".:", ":", "./:", "bin/..:"}) {
    const std::string path = before + (folder_ / "bin").string();
    EXPECT_EQ(ProgramOf({"train.py"}, path, folder_).command, (Words{python, "-u", "train.py"})) << path;
  }
  EXPECT_EQ(ProgramOf({"train.py"}, (folder_ / "bin").string() + ":.", folder_).command.front(), "python3");
  for (const std::string path : {"", ".", ":", "/nonexistent"})
    EXPECT_EQ(ProgramOf({"train.py"}, path, folder_).command.front(), "/usr/bin/python3") << path;
}

TEST_F(ProgramTest, PathComesBeforeTheFolder) {
  Write("bin/tool", "#!/bin/sh\n", true);
  Write("tool", "#!/bin/sh\n", true);
  Write("here", "#!/bin/sh\n", true);
  EXPECT_EQ(Typed({"tool", "x"}).command, (Words{"tool", "x"}));
  const TypedProgram here = Typed({"here", "x"});
  EXPECT_EQ(here.command, (Words{"./here", "x"}));
  EXPECT_THAT(here.assumed, HasSubstr("'here' is not in PATH: it is run as './here'"));
}

TEST_F(ProgramTest, WhatCannotBeRunStaysAsItIs) {
  Write("data", "x", false);
  EXPECT_TRUE(Typed({"data"}).found);
  EXPECT_EQ(Typed({"data"}).command, (Words{"data"}));
  EXPECT_FALSE(Typed({"bin"}).found) << "a folder";
  EXPECT_FALSE(Typed({"absent.py"}).found);
  EXPECT_EQ(Typed({"absent.py"}).command, (Words{"absent.py"}));
}

}  // namespace
}  // namespace dtrun::plan
