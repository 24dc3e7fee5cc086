#include "core/membership/user_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace dtrun::membership {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class UserSecretTest : public ::testing::Test {
 protected:
  UserSecretTest() {
    std::string name = "/tmp/dtrun-secret-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~UserSecretTest() override { fs::remove_all(folder_); }
  fs::path Make(const std::string& name, mode_t mode) {
    const fs::path made = folder_ / name;
    fs::create_directory(made);
    ::chmod(made.c_str(), mode);
    return made;
  }
  fs::path folder_;
};

TEST_F(UserSecretTest, IsTheSameForAllAndForNobodyElse) {
  const auto one = UserSecret::Open({folder_});
  const auto other = UserSecret::Open({folder_});
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->digits().size(), 64u);
  EXPECT_EQ(one->digits(), other->digits());
  struct stat info {};
  ASSERT_EQ(::stat((folder_ / "dtrun-user").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1) << "nothing is left";
}

TEST_F(UserSecretTest, GoesPastFoldersThatOthersCanWrite) {
  const fs::path open = Make("open", 0777), own = folder_ / ".dtrun";
  const auto secret = UserSecret::Open({folder_ / "none", open, own});
  ASSERT_TRUE(secret) << secret.error().text;
  EXPECT_TRUE(fs::exists(own / "dtrun-user"));
  EXPECT_TRUE(fs::is_empty(open));
  if (::geteuid() == 0) {  // another user's, made in advance
    const fs::path squatted = Make("dtrun-user-0", 0755);
    ASSERT_EQ(::chown(squatted.c_str(), 4242, 4242), 0);
    EXPECT_TRUE(UserSecret::Open({squatted, own}));
    EXPECT_TRUE(fs::is_empty(squatted));
  }
  const auto none = UserSecret::Open({open});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text, HasSubstr("set XDG_RUNTIME_DIR or HOME"));
}

TEST_F(UserSecretTest, RefusesAFileThatOthersCanRead) {
  ASSERT_TRUE(UserSecret::Open({folder_}));
  ::chmod((folder_ / "dtrun-user").c_str(), 0644);
  const auto refused = UserSecret::Open({folder_});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("only you can read"));
  fs::remove(folder_ / "dtrun-user");
  fs::create_symlink("/etc/passwd", folder_ / "dtrun-user");
  EXPECT_FALSE(UserSecret::Open({folder_}));
}

TEST_F(UserSecretTest, OneIsTheRootAtAPort) {
  auto one = UserSecret::Open({folder_});
  const auto other = UserSecret::Open({folder_});
  EXPECT_TRUE(one->ClaimRoot(29400));
  EXPECT_TRUE(one->ClaimRoot(29400));
  EXPECT_FALSE(other->ClaimRoot(29400));
  EXPECT_TRUE(other->ClaimRoot(29401));
  one = UserSecret::Open({folder_});  // ends the claim
  EXPECT_TRUE(other->ClaimRoot(29400));
}

}  // namespace
}  // namespace dtrun::membership
