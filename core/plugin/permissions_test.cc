#include "core/plugin/permissions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "core/plugin/testing/support.h"

namespace dtrun::plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Permissions, AcceptsAFileThatOnlyTheUserMayWrite) {
  const testing::TempFolder folder;
  std::vector<std::string> warnings;
  EXPECT_TRUE(CheckPermissions(folder.Write("a.so"), &warnings).ok());
}

TEST(Permissions, RefusesAWorldWritableFileWithTheCommandThatFixesIt) {
  const testing::TempFolder folder;
  const auto path = folder.Write("a.so");
  testing::SetMode(path, 0666);
  const Status status = CheckPermissions(path, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text, AllOf(HasSubstr("0666"), HasSubstr("chmod o-w '" + path.string() + "'")));
}

TEST(Permissions, RefusesAWorldWritableFolderAbove) {
  const testing::TempFolder folder;
  const auto path = folder.Write("outer/inner/a.so");
  testing::SetMode(folder.path() / "outer", 0777);
  const Status status = CheckPermissions(path, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text, HasSubstr("chmod o-w '" + (folder.path() / "outer").string() + "'"));
}

TEST(Permissions, AcceptsAWorldWritableFolderWithTheStickyBit) {
  const testing::TempFolder folder;
  const auto path = folder.Write("sticky/a.so");
  testing::SetMode(folder.path() / "sticky", 01777);
  EXPECT_TRUE(CheckPermissions(path, nullptr).ok());
}

TEST(Permissions, WarnsOfAGroupWritableFolder) {
  const testing::TempFolder folder;
  const auto path = folder.Write("shared/a.so");
  testing::SetMode(folder.path() / "shared", 0775);
  std::vector<std::string> warnings;
  EXPECT_TRUE(CheckPermissions(path, &warnings).ok());
  EXPECT_THAT(warnings,
              ::testing::Contains(HasSubstr("chmod g-w '" + (folder.path() / "shared").string() + "'")));
}

TEST(Permissions, OfSeveralPluginsAreOneLine) {
  const testing::TempFolder folder;
  const auto a = folder.Write("shared/a.so"), b = folder.Write("shared/b.so");
  EXPECT_EQ(GroupWarning({a, b, "/nonexistent"}), "");
  const std::string place = (folder.path() / "shared").string();
  testing::SetMode(place, 0775);
  const std::string line = fmt::format(
      "plugins of this job could be changed by others: the folder '{}' may be written by group {}; "
      "to stop that: chmod g-w '{}'",
      place, ::getegid(), place);
  EXPECT_EQ(GroupWarning({a, b}), line) << "a folder of both, once";
  testing::SetMode(b, 0775);
  EXPECT_THAT(GroupWarning({a, b}), ::testing::EndsWith("'; `dtrun plugins list` has 1 more"));
}

TEST(Permissions, RefusesWhatAnotherGroupMayWriteTo) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  const testing::TempFolder folder;
  const auto path = folder.Write("a.so");
  testing::SetMode(path, 0775);
  ASSERT_EQ(::chown(path.c_str(), 0, 54321), 0);
  const Status status = CheckPermissions(path, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text, AllOf(HasSubstr("may be written by group 54321"), HasSubstr("chmod g-w")));
}

// A chain of links, because any hop can be redirected. Written as "setfacl -m u:4242:PERMISSIONS"
// stores it.
int AllowUser4242(const std::filesystem::path& path, std::uint16_t permissions) {
  struct Entry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  struct {
    std::uint32_t version = 2;
    Entry entries[5];
  } list;
  const std::uint32_t none = 0xffffffff;
  const Entry entries[] = {{1, 6, none}, {2, permissions, 4242}, {4, 4, none}, {16, 6, none}, {32, 4, none}};
  std::copy(std::begin(entries), std::end(entries), list.entries);
  return ::setxattr(path.c_str(), "system.posix_acl_access", &list, sizeof list, 0);
}

TEST(Permissions, RefusesWhatAnAccessListLetsAnotherUserWrite) {
  const testing::TempFolder folder;
  const auto path = folder.Write("a.so");
  if (AllowUser4242(path, 4) != 0) GTEST_SKIP() << "this file system keeps no access lists";
  EXPECT_TRUE(CheckPermissions(path, nullptr).ok());
  ASSERT_EQ(AllowUser4242(path, 6), 0);
  const Status status = CheckPermissions(path, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text,
              AllOf(HasSubstr("user 4242"), HasSubstr("setfacl -b '" + path.string() + "'")));
}

TEST(Permissions, LooksAtTheFolderOfEveryLinkOnTheWay) {
  const testing::TempFolder folder;
  const auto real = folder.Write("real/a.so");
  const auto middle = folder.Write("open/other").parent_path() / "b.so";
  std::filesystem::create_symlink(real, middle);
  std::filesystem::create_directory(folder.path() / "mine");
  std::filesystem::create_symlink("../open/b.so", folder.path() / "mine/c.so");
  EXPECT_TRUE(CheckPermissions(folder.path() / "mine/c.so", nullptr).ok());
  testing::SetMode(folder.path() / "open", 0777);
  const Status status = CheckPermissions(folder.path() / "mine/c.so", nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text, HasSubstr("chmod o-w '" + (folder.path() / "open").string() + "'"));
}

TEST(Permissions, RefusesTheLinkOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a link away";
  const testing::TempFolder folder;
  const auto link = folder.Write("sticky/other").parent_path() / "b.so";
  std::filesystem::create_symlink(folder.Write("a.so"), link);
  testing::SetMode(folder.path() / "sticky", 01777);
  EXPECT_TRUE(CheckPermissions(link, nullptr).ok());
  ASSERT_EQ(::lchown(link.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  const Status status = CheckPermissions(link, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text,
              AllOf(HasSubstr("the link '"), HasSubstr("user 12345"), HasSubstr("chown -h")));
}

TEST(Permissions, EndsAtALoopOfLinks) {
  const testing::TempFolder folder;
  std::filesystem::create_symlink("b.so", folder.path() / "a.so");
  std::filesystem::create_symlink("a.so", folder.path() / "b.so");
  EXPECT_THAT(CheckPermissions(folder.path() / "a.so", nullptr).error().text, HasSubstr("symbolic links"));
}

TEST(Permissions, RefusesAFileOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const testing::TempFolder folder;
  const auto path = folder.Write("a.so");
  ASSERT_EQ(::chown(path.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  const Status status = CheckPermissions(path, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text, AllOf(HasSubstr("user 12345"), HasSubstr("chown")));
}

}  // namespace
}  // namespace dtrun::plugin
