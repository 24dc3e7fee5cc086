#include "core/store/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/store/testing/local_store.h"

namespace dtrun::store {
namespace {

using ::testing::HasSubstr;
using testing::LocalStore;

TEST(Listener, LetsOnlyTheOwnerReachTheSocketAndRemovesIt) {
  LocalStore store;
  struct stat info {};
  ASSERT_EQ(::stat(store.AddressOf(0).socket.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  store.Stop();
  EXPECT_FALSE(std::filesystem::exists(store.AddressOf(0).socket));
}

TEST(Listener, RefusesAFolderThatOthersCanEnter) {
  LocalStore store;
  const auto open = store.folder() / "open";
  std::filesystem::create_directory(open);
  ASSERT_EQ(::chmod(open.c_str(), 0755), 0);
  boost::asio::io_context loop;
  const auto listener = Listener::Listen(loop, open / "s", [](Socket) {});
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(listener.error().text, HasSubstr("0755"));
}

TEST(Listener, RefusesAPathThatIsTooLongForASocket) {
  LocalStore store;
  boost::asio::io_context loop;
  const auto listener = Listener::Listen(loop, store.folder() / std::string(120, 's'), [](Socket) {});
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(listener.error().text, HasSubstr("107"));
}

TEST(Listener, RefusesASocketThatIsTakenAndLeavesItAlone) {
  LocalStore store;
  boost::asio::io_context loop;
  const auto listener = Listener::Listen(loop, store.AddressOf(0).socket, [](Socket) {});
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.error().code, DTRUN_SYSTEM);
  EXPECT_NE(store.Connect(), nullptr);
}

}  // namespace
}  // namespace dtrun::store
