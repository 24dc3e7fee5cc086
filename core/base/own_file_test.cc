#include "core/base/own_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

namespace dtrun {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OwnFileTest : public ::testing::Test {
 protected:
  OwnFileTest() {
    char name[] = "/tmp/dtrun-own-XXXXXX";
    folder_ = ::mkdtemp(name);
    fd_ = UniqueFd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    umask_ = ::umask(0);
  }
  ~OwnFileTest() override {
    ::umask(umask_);
    fs::remove_all(folder_);
  }
  static mode_t ModeOf(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  static std::string TextOf(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
  UniqueFd fd_;
  mode_t umask_ = 0;
};

TEST_F(OwnFileTest, HasTheModeWhateverTheUmask) {
  for (const mode_t umask : {0, 022, 077}) {
    ::umask(umask);
    ASSERT_TRUE(MakeOwnFile(folder_ / "log", 0640));
    EXPECT_EQ(ModeOf(folder_ / "log"), 0640u);
    ASSERT_TRUE(ReplaceOwnFile(fd_.get(), folder_, "verdict", "x", 0600));
    EXPECT_EQ(ModeOf(folder_ / "verdict"), 0600u);
  }
}

TEST_F(OwnFileTest, IsNotWrittenThroughALink) {
  const fs::path victim = folder_ / "victim";
  std::ofstream(victim) << "precious";
  for (const char* name : {"log", "verdict", "shared"}) fs::create_symlink(victim, folder_ / name);
  ASSERT_TRUE(MakeOwnFile(folder_ / "log", 0600));
  ASSERT_TRUE(ReplaceOwnFile(fd_.get(), folder_, "verdict", "x", 0600));
  const auto appended = AppendToOwnFileAt(fd_.get(), folder_ / "shared", 0600);
  ASSERT_FALSE(appended);
  EXPECT_THAT(appended.error().text, HasSubstr("it is a symbolic link"));
  EXPECT_EQ(TextOf(victim), "precious");
  EXPECT_EQ(TextOf(folder_ / "verdict"), "x");
}

TEST_F(OwnFileTest, DoesNotWaitForAPipesReader) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(AppendToOwnFileAt(fd_.get(), folder_ / "pipe", 0600));
  EXPECT_TRUE(ReplaceOwnFile(fd_.get(), folder_, "pipe", "x", 0600));
  EXPECT_EQ(TextOf(folder_ / "pipe"), "x");
}

TEST_F(OwnFileTest, AppendsToNoFileOfAnotherNameToo) {
  std::ofstream(folder_ / "victim") << "precious";
  fs::create_hard_link(folder_ / "victim", folder_ / "stacks.txt");
  EXPECT_THAT(AppendToOwnFileAt(fd_.get(), folder_ / "stacks.txt", 0600).error().text,
              HasSubstr("with another name too; remove it"));
}

TEST_F(OwnFileTest, KeepsTheOldContentWhenThereIsNoRoom) {
  ASSERT_TRUE(ReplaceOwnFile(fd_.get(), folder_, "verdict", "old", 0600));
  const auto write_much = [this] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};  // applies to the messages too
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Status written = ReplaceOwnFile(fd_.get(), folder_, "verdict", std::string(100'000, 'x'), 0600);
    std::fprintf(stderr, "%s", written ? "written" : written.error().text.c_str());
    std::exit(0);
  };
  EXPECT_EXIT(write_much(), testing::ExitedWithCode(0), "cannot write '.*verdict'");
  EXPECT_EQ(TextOf(folder_ / "verdict"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(OwnFileTest, NamesWhoMayReplaceAFolder) {
  EXPECT_EQ(WhoMayReplace(folder_), "");
  fs::create_directories(folder_ / "a/b");
  ASSERT_EQ(::chmod((folder_ / "a/b").c_str(), 0755), 0);
  ASSERT_EQ(::chmod((folder_ / "a").c_str(), 0777), 0);
  EXPECT_THAT(WhoMayReplace(folder_ / "a/b"),
              HasSubstr("every user can write to '" + (folder_ / "a").string()));
  ASSERT_EQ(::chmod((folder_ / "a").c_str(), 01777), 0);
  EXPECT_EQ(WhoMayReplace(folder_ / "a/b"), "");
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown((folder_ / "a").c_str(), 4242, 4242), 0);
  EXPECT_THAT(WhoMayReplace(folder_ / "a/b"), HasSubstr("belongs to user 4242"));
}

TEST_F(OwnFileTest, IsRefusedWithOneWordOfAdvice) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Result<UniqueFd> made = MakeOwnFile(folder_ / "log", 0600);
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(made);
  const std::string& text = made.error().text;
  EXPECT_NE(text.find("ulimit -n"), text.npos) << text;
  EXPECT_EQ(text.find("ulimit -n"), text.rfind("ulimit -n")) << text;
}

TEST_F(OwnFileTest, AFileThatTheUserNamedIsWrittenInPlace) {
  const fs::path real = folder_ / "real", link = folder_ / "link";
  std::ofstream(real) << "longer than what comes";
  fs::create_symlink(real, link);
  ASSERT_TRUE(WriteNamedFile(link, "short"));
  EXPECT_EQ(TextOf(real), "short");
  EXPECT_TRUE(fs::is_symlink(link));
  ASSERT_TRUE(WriteNamedFile(folder_ / "new", "x"));
  EXPECT_EQ(TextOf(folder_ / "new"), "x");
  EXPECT_TRUE(WriteNamedFile("/dev/null", "x"));
  EXPECT_THAT(WriteNamedFile(folder_ / "none/x", "x").error().text, HasSubstr("none"));
}

TEST_F(OwnFileTest, WhatAStrangerHasPutUnderANameIsNotWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
  constexpr uid_t kStranger = 4242;
  const fs::path victim = folder_ / "victim", link = folder_ / "link", file = folder_ / "file",
                 other = folder_ / "other";
  ASSERT_EQ(::chmod(folder_.c_str(), 01777), 0);
  for (const fs::path& one : {victim, file}) std::ofstream(one) << "precious";
  fs::create_symlink(victim, link);
  ASSERT_EQ(::lchown(link.c_str(), kStranger, kStranger), 0);
  EXPECT_THAT(WriteNamedFile(link, "x").error().text,
              HasSubstr("link': it is a link of user 4242, where others may write; remove it"));
  fs::create_hard_link(victim, other);
  EXPECT_THAT(WriteNamedFile(other, "x").error().text, HasSubstr("it is a file with another name too"));
  EXPECT_EQ(TextOf(victim), "precious");
  ASSERT_EQ(::lchown(file.c_str(), kStranger, kStranger), 0);
  EXPECT_FALSE(WriteNamedFile(file, "x"));
  EXPECT_EQ(TextOf(file), "precious");
}

}  // namespace
}  // namespace dtrun
