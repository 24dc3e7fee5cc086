#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/base/fd.h"
#include "core/base/peer_user.h"

namespace dtrun {
namespace {

class Listeners : public ::testing::TestWithParam<int> {
 protected:
  // Binds `socket` to the loopback address of its family and returns the port.
  static int Bind(int socket) {
    sockaddr_in6 name{};
    socklen_t size = sizeof name;
    if (GetParam() == AF_INET) {
      auto& v4 = reinterpret_cast<sockaddr_in&>(name);
      v4.sin_family = AF_INET;
      v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      size = sizeof v4;
    } else {
      name.sin6_family = AF_INET6;
      name.sin6_addr = in6addr_loopback;
    }
    if (::bind(socket, reinterpret_cast<sockaddr*>(&name), size) != 0) return -1;
    EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size), 0);
    return ntohs(name.sin6_port);  // same offset in both families
  }
};

TEST_P(Listeners, AreSeenOnceTheyListen) {
  const UniqueFd socket(::socket(GetParam(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int port = socket ? Bind(socket.get()) : -1;
  if (port < 0) GTEST_SKIP() << "this host has no loopback of that family";
  EXPECT_FALSE(MayHaveListener(port));
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  EXPECT_TRUE(MayHaveListener(port));
}

INSTANTIATE_TEST_SUITE_P(Families, Listeners, ::testing::Values(AF_INET, AF_INET6));

}  // namespace
}  // namespace dtrun
