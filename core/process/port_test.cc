#include "core/process/port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace dtrun::process {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif

// Binds as a rank would; 0 or the errno.
struct RankSocket {
  RankSocket(int family, int port, bool reuse, bool listening)
      : fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    if (reuse) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in6 six{};
    sockaddr_in four{};
    six.sin6_family = AF_INET6;
    four.sin_family = AF_INET;
    six.sin6_port = four.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool v6 = family == AF_INET6;
    const auto* address = v6 ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
    error = ::bind(fd.get(), address, v6 ? sizeof six : sizeof four) == 0 ? 0 : errno;
    if (error == 0 && listening && ::listen(fd.get(), 8) != 0) error = errno;
  }
  UniqueFd fd;
  int error;
};

bool HasIpv6() {
  UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  return socket && ::bind(socket.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0;
}

TEST(HeldPort, LetsARankBindAndListenWithReuseAddress) {
  Result<HeldPort> port = HeldPort::Hold(0);
  ASSERT_TRUE(port) << port.error().text;
  EXPECT_EQ(RankSocket(AF_INET, port->number(), true, true).error, 0);
  if (HasIpv6()) {
    EXPECT_EQ(RankSocket(AF_INET6, port->number(), true, true).error, 0);
  }
}

TEST(HeldPort, KeepsThoseWithoutReuseAddressOut) {
  Result<HeldPort> port = HeldPort::Hold(0);
  ASSERT_TRUE(port);
  EXPECT_EQ(RankSocket(AF_INET, port->number(), false, true).error, EADDRINUSE);
  if (HasIpv6()) {
    EXPECT_EQ(RankSocket(AF_INET6, port->number(), false, true).error, EADDRINUSE);
  }
}

TEST(HeldPort, IsNeverGivenToASocketThatAsksForAnyPort) {
  Result<HeldPort> port = HeldPort::Hold(0);
  ASSERT_TRUE(port);
  for (bool reuse : {false, true}) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = reuse ? 1 : 0;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // The kernel may give this socket only the held port.
    const std::uint32_t number = static_cast<std::uint32_t>(port->number());
    const std::uint32_t range = number << 16 | number;
    if (::setsockopt(socket.get(), IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, sizeof range) != 0) {
      GTEST_SKIP() << "needs Linux 6.3";
    }
    sockaddr_in any{};
    any.sin_family = AF_INET;
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), -1) << reuse;
    EXPECT_EQ(errno, EADDRINUSE);
  }
}

TEST(HeldPort, IsFreeAgainAfterwards) {
  int number = 0;
  {
    Result<HeldPort> port = HeldPort::Hold(0);
    ASSERT_TRUE(port);
    number = port->number();
  }
  Result<HeldPort> again = HeldPort::Hold(number);
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(again->number(), number);
}

TEST(HeldPort, NamesTheProcessThatListensOnAWantedPort) {
  RankSocket listener(AF_INET, 0, false, true);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int number = ntohs(address.sin_port);
  Result<HeldPort> port = HeldPort::Hold(number);
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().code, DTRUN_BUSY);
  EXPECT_THAT(port.error().text, AllOf(HasSubstr("port " + std::to_string(number) + " is in use"),
                                       HasSubstr("process " + std::to_string(::getpid()))));
}

TEST(HeldPort, NoticesAPortThatAnotherJobHolds) {
  Result<HeldPort> first = HeldPort::Hold(0);
  ASSERT_TRUE(first);
  Result<HeldPort> second = HeldPort::Hold(first->number());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().text, HasSubstr("another dtrun job"));
}

TEST(HeldPort, TakesAPortWhoseLastConnectionsFadeAway) {
  int number = 0;
  {
    RankSocket listener(AF_INET, 0, true, true);
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ASSERT_EQ(::getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    number = ntohs(address.sin_port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    UniqueFd server(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(server);
    server.Reset();  // closes first: TIME_WAIT stays on the server's port
    char byte = 0;
    ASSERT_EQ(::read(client.get(), &byte, 1), 0);
  }
  Result<HeldPort> port = HeldPort::Hold(number);
  EXPECT_TRUE(port) << port.error().text;
}

}  // namespace
}  // namespace dtrun::process
