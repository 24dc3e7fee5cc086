#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "core/base/own_file.h"

namespace dtrun {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uid_t kOtherUser = 4242;

class OwnFolderTest : public ::testing::Test {
 protected:
  OwnFolderTest() {
    char name[] = "/tmp/dtrun-folder-XXXXXX";
    folder_ = fs::canonical(::mkdtemp(name));
    fs::create_directory(folder_ / "target");
    fs::create_directory(folder_ / "open");
    fs::permissions(folder_ / "open", fs::perms::all | fs::perms::sticky_bit);
  }
  ~OwnFolderTest() override { fs::remove_all(folder_); }

  static bool Same(int fd, const fs::path& path) {
    struct stat one {
    }, other{};
    EXPECT_EQ(::fstat(fd, &one), 0);
    EXPECT_EQ(::stat(path.c_str(), &other), 0);
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
  }
  // False unless run as root.
  bool StrangersLink(const fs::path& link) {
    fs::create_directory_symlink(folder_ / "target", link);
    return ::lchown(link.c_str(), kOtherUser, kOtherUser) == 0;
  }

  fs::path folder_;
};

TEST_F(OwnFolderTest, FollowsLinksOfItsOwn) {
  fs::create_directory_symlink(folder_ / "target", folder_ / "open/absolute");
  fs::create_directory_symlink("../target/./..//target", folder_ / "open/relative");
  for (const char* name : {"absolute", "relative"}) {
    const auto fd = OpenFolder(folder_ / "open" / name);
    ASSERT_TRUE(fd) << fd.error().text;
    EXPECT_TRUE(Same(fd->get(), folder_ / "target")) << name;
  }
}

TEST_F(OwnFolderTest, EndsALoopOfLinks) {
  fs::create_directory_symlink("loop", folder_ / "loop");
  EXPECT_THAT(OpenFolder(folder_ / "loop/x", true).error().text, HasSubstr("loop"));
}

TEST_F(OwnFolderTest, MakesWhatIsMissingOnlyWhenAsked) {
  EXPECT_FALSE(OpenFolder(folder_ / "a/b"));
  const auto fd = OpenFolder(folder_ / "a/b", true);
  ASSERT_TRUE(fd) << fd.error().text;
  EXPECT_TRUE(Same(fd->get(), folder_ / "a/b"));
}

TEST_F(OwnFolderTest, RefusesTheLinkOfAStrangerWhereOthersMayWrite) {
  if (!StrangersLink(folder_ / "open/link")) GTEST_SKIP() << "needs root";
  fs::create_directory(folder_ / "theirs");
  ASSERT_EQ(::chown((folder_ / "theirs").c_str(), kOtherUser, kOtherUser), 0);
  ASSERT_TRUE(StrangersLink(folder_ / "theirs/link"));
  for (const char* name : {"open/link", "open/link/deeper", "theirs/link"}) {
    EXPECT_THAT(OpenFolder(folder_ / name, true).error().text,
                AllOf(HasSubstr("/link' is a symbolic link of user 4242"), HasSubstr("remove it")))
        << name;
  }
  EXPECT_TRUE(fs::is_empty(folder_ / "target"));
}

// Administrators make links to other disks and give them away; no other user can change them.
TEST_F(OwnFolderTest, FollowsTheLinkOfAStrangerWhereNobodyElseMayWrite) {
  if (!StrangersLink(folder_ / "link")) GTEST_SKIP() << "needs root";
  const auto fd = OpenFolder(folder_ / "link");
  ASSERT_TRUE(fd) << fd.error().text;
  EXPECT_TRUE(Same(fd->get(), folder_ / "target"));
}

TEST_F(OwnFolderTest, EntersNoLinkAndNoFile) {
  const auto outer = OpenFolder(folder_);
  fs::create_directory_symlink("target", folder_ / "link");
  std::ofstream(folder_ / "file") << "";
  EXPECT_THAT(EnterFolderAt(outer->get(), folder_, "link", 0700).error().text,
              AllOf(HasSubstr("/link': there is a link of user"), HasSubstr("remove it")));
  EXPECT_THAT(EnterFolderAt(outer->get(), folder_, "file", 0700).error().text,
              AllOf(HasSubstr("/file': there is a file of user"), HasSubstr("remove it")));
  for (int time = 0; time < 2; ++time) {
    const auto fd = EnterFolderAt(outer->get(), folder_, "fresh", 0750);
    ASSERT_TRUE(fd) << fd.error().text;
    EXPECT_TRUE(Same(fd->get(), folder_ / "fresh"));
  }
  EXPECT_EQ(fs::status(folder_ / "fresh").permissions(), static_cast<fs::perms>(0750));
}

}  // namespace
}  // namespace dtrun
