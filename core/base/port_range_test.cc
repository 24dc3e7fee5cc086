#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>
#include <vector>

#include "core/base/endpoint.h"
#include "core/base/fd.h"

namespace dtrun {
namespace {

struct Window {
  explicit Window(PortRange range) { UsePortRange(range); }
  ~Window() { UsePortRange({}); }
};

int PortOf(int socket) {
  sockaddr_in6 address{};
  socklen_t size = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin6_port);
}

UniqueFd Socket() { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

int Bind(const UniqueFd& socket, int port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return BindInRange(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

TEST(PortRange, IsReadAndWritten) {
  EXPECT_EQ(ToText(*ParsePortRange("40000-40100")), "40000-40100");
  EXPECT_EQ(ToText(*ParsePortRange("7-7")), "7-7");
  EXPECT_EQ(ToText(*ParsePortRange("")), "");
  for (const char* text : {"40000", "40000-", "-40000", "0-5", "9-8", "1-65536", "1 - 5", "a-b", "1-5x"}) {
    EXPECT_FALSE(ParsePortRange(text)) << text;
  }
}

// The first of `count` consecutive ports that are free at this moment; other programs may take one.
int FreeRow(int count) {
  for (int first = 20'000; first < 30'000; first += count) {
    std::vector<UniqueFd> sockets;
    for (int i = 0; i < count; ++i) {
      sockets.push_back(Socket());
      if (Bind(sockets.back(), first + i) != 0) break;
      if (i == count - 1) return first;
    }
  }
  return 0;
}

TEST(BindInRange, TakesEveryPortOfTheWindowAndNoOther) {
  const int first = FreeRow(4);
  ASSERT_NE(first, 0);
  const Window window({first, first + 3});
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < 4; ++i) {
    sockets.push_back(Socket());
    ASSERT_EQ(Bind(sockets.back()), 0);
    EXPECT_GE(PortOf(sockets.back().get()), first);
    EXPECT_LE(PortOf(sockets.back().get()), first + 3);
  }
  EXPECT_EQ(Bind(Socket()), EADDRINUSE);
  EXPECT_THAT(NoFreePort("listen", EADDRINUSE).text,
              ::testing::HasSubstr("cluster.port_range (" + std::to_string(first) + "-"));
  EXPECT_EQ(NoFreePort("listen", EADDRNOTAVAIL).text, Error::System("listen", EADDRNOTAVAIL).text);
  const UniqueFd chosen = Socket();
  sockets.pop_back();
  EXPECT_EQ(Bind(chosen), 0);
}

TEST(BindInRange, LeavesAChosenPortAndNoWindowAlone) {
  const UniqueFd any = Socket();
  ASSERT_EQ(Bind(any), 0);
  EXPECT_NE(PortOf(any.get()), 0);
  const int port = PortOf(any.get());
  EXPECT_EQ(Bind(Socket(), port), EADDRINUSE);
}

}  // namespace
}  // namespace dtrun
