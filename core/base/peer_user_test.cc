#include "core/base/peer_user.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/fd.h"

namespace dtrun {
namespace {

constexpr uid_t kStranger = 4242;

class UserOfPeerTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    listener_ = UniqueFd(::socket(GetParam(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (GetParam() == AF_INET) {
      auto& v4 = reinterpret_cast<sockaddr_in&>(name_);
      v4.sin_family = AF_INET;
      v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
      auto& v6 = reinterpret_cast<sockaddr_in6&>(name_);
      v6.sin6_family = AF_INET6;
      v6.sin6_addr = in6addr_loopback;
    }
    if (!listener_ || ::bind(listener_.get(), Name(), sizeof name_) != 0)
      GTEST_SKIP() << "no such family here";
    ASSERT_EQ(::listen(listener_.get(), 8), 0);
    socklen_t size = sizeof name_;
    ASSERT_EQ(::getsockname(listener_.get(), Name(), &size), 0);
  }

  sockaddr* Name() { return reinterpret_cast<sockaddr*>(&name_); }
  UniqueFd Connect() {
    UniqueFd socket(::socket(GetParam(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), Name(), sizeof name_), 0);
    return socket;
  }
  UniqueFd Accept() { return UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

  sockaddr_storage name_{};
  UniqueFd listener_;
};

TEST_P(UserOfPeerTest, KnowsItsOwn) {
  const UniqueFd client = Connect(), server = Accept();
  EXPECT_EQ(UserOfPeer(server.get(), ::geteuid()), PeerUser::kSame);
  EXPECT_EQ(UserOfPeer(client.get(), ::geteuid()), PeerUser::kSame);
  EXPECT_EQ(UserOfPeer(server.get(), kStranger), PeerUser::kAnother);
}

TEST_P(UserOfPeerTest, TakesAClosedEndForNobodys) {
  UniqueFd client = Connect();
  const UniqueFd server = Accept();
  client.Reset();
  EXPECT_EQ(UserOfPeer(server.get(), ::geteuid()), PeerUser::kAnother);
  EXPECT_EQ(UserOfPeer(server.get(), 0), PeerUser::kAnother);
}

TEST_P(UserOfPeerTest, KnowsAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const UniqueFd over(ready[0]);
  UniqueFd hold(ready[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    hold.Reset();
    if (::setresuid(kStranger, kStranger, kStranger) != 0) ::_exit(1);
    const UniqueFd client(::socket(GetParam(), SOCK_STREAM, 0));
    if (::connect(client.get(), Name(), sizeof name_) != 0) ::_exit(1);
    char byte = 0;
    ::_exit(::read(over.get(), &byte, 1) == 0 ? 0 : 1);
  }
  const UniqueFd server = Accept();
  EXPECT_EQ(UserOfPeer(server.get(), ::geteuid()), PeerUser::kAnother);
  EXPECT_EQ(UserOfPeer(server.get(), kStranger), PeerUser::kSame);
  hold.Reset();
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Families, UserOfPeerTest, ::testing::Values(AF_INET, AF_INET6));

}  // namespace
}  // namespace dtrun
