#include "sdk/helpers/helper.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace dtrun::helpers {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class HelperTest : public ::testing::Test {
 protected:
  HelperTest() {
    std::string name = (fs::temp_directory_path() / "dtrun-helper-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
    before_ = fs::current_path();
    fs::create_directory(folder_ / "bin");
    fs::current_path(folder_);
  }
  ~HelperTest() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  void Script(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << "#!/bin/sh\n" << text;
    ::chmod((folder_ / name).c_str(), 0755);
  }

  fs::path folder_, before_;
};

Helper Shell(const std::string& script) { return {.command = {"/bin/sh", "-c", script}}; }

TEST_F(HelperTest, AnswersWithWhatItPrintsAndHowItEnds) {
  const Answer answer = Ask(Shell("echo one; echo two >&2; cat; exit 3"));  // its input is empty
  EXPECT_EQ(answer.end, End::kEnded);
  EXPECT_EQ(answer.text, "one\n");
  EXPECT_EQ(WEXITSTATUS(answer.status), 3);
  EXPECT_FALSE(answer.succeeded());
  Helper both = Shell("echo one; echo two >&2");
  both.with_errors = true;
  EXPECT_EQ(Ask(both).text, "one\ntwo\n");
}

TEST_F(HelperTest, RunsInTheRootFolderUnlessAnotherIsNamed) {
  EXPECT_EQ(Ask(Shell("pwd")).text, "/\n");
  Helper there = Shell("pwd; echo $WORD");
  there.folder = "/usr";
  there.environment = {"WORD=hello"};
  EXPECT_EQ(Ask(there).text, "/usr\nhello\n");
}

TEST_F(HelperTest, IsFoundInAbsoluteFoldersAlone) {
  Script("tool", "");
  Script("bin/tool", "");
  const std::string bin = (folder_ / "bin").string();
  for (const std::string before : {"", ":", ".:", "./:", "bin:", "::.:"})
    EXPECT_EQ(Find("tool", before + bin), bin + "/tool") << before;
  for (const std::string path : {"", ":", ".", "bin", "/nonexistent:", "/usr:."})
    EXPECT_EQ(Find("tool", path), "");
  fs::permissions(folder_ / "bin/tool", fs::perms::owner_read);
  EXPECT_EQ(Find("tool", bin), "");
  EXPECT_EQ(Find("bin", folder_.string()), "") << "a folder";
  EXPECT_EQ(Find("./tool", ""), (folder_ / "./tool").string()) << "what is named is meant";
}

TEST_F(HelperTest, AFileOfTheCurrentFolderIsNoHelper) {
  Script("tool", "echo a stranger\n");
  EXPECT_EQ(Ask({.command = {"tool"}}).status, ENOENT);
  EXPECT_EQ(Ask({.command = {"./tool"}}).status, ENOENT);
  EXPECT_EQ(Ask({.command = {(folder_ / "absent").string()}}).status, ENOENT);
  EXPECT_EQ(Ask({.command = {"/bin/sh"}, .folder = (folder_ / "absent").string()}).status, ENOENT);
  std::ofstream(folder_ / "plain");
  EXPECT_EQ(Ask({.command = {(folder_ / "plain").string()}}).status, EACCES);
}

TEST_F(HelperTest, ItsEnvironmentLeadsToNoCurrentFolder) {
  EXPECT_THAT(
      SafeEnvironment({"PATH=:/usr/bin:.:bin::/bin:", "LD_LIBRARY_PATH=:/a;b;$ORIGIN/lib", "PYTHONPATH=:/p",
                       "LD_PRELOAD=libc.so.6 ./x.so /y.so", "HOME=relative", "PYTHONHASHSEED=", "no value"}),
      ElementsAre("PATH=/usr/bin:/bin", "LD_LIBRARY_PATH=/a:$ORIGIN/lib", "PYTHONPATH=/p",
                  "LD_PRELOAD=libc.so.6:/y.so", "HOME=relative", "PYTHONHASHSEED=", "no value"));
  EXPECT_THAT(SafeEnvironment({"PATH=", "PYTHONPATH=.", "BASH_ENV=env.sh", "ENV=./env.sh",
                               "PYTHONSTARTUP=a.py", "PYTHONINSPECT=1", "PYTHONUSERBASE=x", "GCONV_PATH=."}),
              ElementsAre("PATH=/usr/local/bin:/usr/bin:/bin"));
  EXPECT_THAT(SafeEnvironment({"BASH_ENV=/etc/profile.d/modules.sh", "PYTHONHOME=/opt/python"}),
              ElementsAre("BASH_ENV=/etc/profile.d/modules.sh", "PYTHONHOME=/opt/python",
                          "PATH=/usr/local/bin:/usr/bin:/bin"));
}

// A helper's shell first runs the file in BASH_ENV, and a script in it finds its programs by PATH.
TEST_F(HelperTest, WhatAHelperStartsIsNotOfItsFolderEither) {
  Script("tool", "echo a stranger\n");
  Script("env.sh", "echo a stranger\n");
  Helper bash{.command = {"/bin/bash", "-c", "tool; echo done"},
              .environment = {"PATH=:.", "BASH_ENV=env.sh", "LD_PRELOAD=./libstranger.so"},
              .folder = folder_.string(),
              .with_errors = true};
  const std::string text = Ask(bash).text;
  EXPECT_THAT(text, Not(HasSubstr("a stranger")));
  EXPECT_THAT(text, HasSubstr("done"));
}

TEST_F(HelperTest, HasNoOtherDescriptors) {
  constexpr int kLeft = 77;  // the program that started dtrun may leave one open
  ASSERT_EQ(::dup2(STDERR_FILENO, kLeft), kLeft);
  const Answer answer = Ask(Shell("test -e /proc/$$/fd/2 && echo two; test -e /proc/$$/fd/77 && echo left"));
  ::close(kLeft);
  EXPECT_EQ(answer.text, "two\n");
}

TEST_F(HelperTest, HasDefaultSignalsAndEndsByThem) {
  ::signal(SIGPIPE, SIG_IGN);
  const Answer answer = Ask(Shell("kill -PIPE $$; echo lives"));
  ::signal(SIGPIPE, SIG_DFL);
  EXPECT_TRUE(WIFSIGNALED(answer.status));
  EXPECT_EQ(answer.text, "");
}

TEST_F(HelperTest, IsEndedInTimeWithAllThatItHasStarted) {
  Helper hangs = Shell("echo one; sleep 1000 & exec sleep 1000");
  hangs.patience = std::chrono::milliseconds(300);
  Answer answer = Ask(hangs);
  EXPECT_EQ(answer.end, End::kTooLate);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "nothing is left";
  hangs.command[2] = "exec >/dev/null; exec sleep 1000";  // closed its output and keeps running
  EXPECT_EQ(Ask(hangs).end, End::kTooLate);
}

TEST_F(HelperTest, IsNotWaitedForByWhatItLeavesBehind) {
  const Answer answer = Ask(Shell("sleep 1000 & echo one"));
  EXPECT_TRUE(answer.succeeded());
  EXPECT_EQ(answer.text, "one\n");
}

TEST_F(HelperTest, PrintsNoMoreThanIsRead) {
  Helper loud = Shell("exec cat /dev/zero");
  loud.most = 100'000;
  const Answer answer = Ask(loud);
  EXPECT_EQ(answer.end, End::kTooMuch);
  EXPECT_EQ(answer.text.size(), loud.most);
  loud.command[2] = "exec head -c 100000 /dev/zero";
  EXPECT_TRUE(Ask(loud).succeeded());
}

}  // namespace
}  // namespace dtrun::helpers
