#include "graceful_close.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace dtrun::gloo_plugin {
namespace {

using Clock = std::chrono::steady_clock;

// Two ends of a connection.
struct Connection {
  Connection() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener, any, size), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    EXPECT_EQ(::getsockname(listener, any, &size), 0);
    here = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(here, any, size), 0);
    there = ::accept(listener, nullptr, nullptr);
    ::close(listener);
  }
  int here = -1, there = -1;
};

// Sends until the kernel takes no more: more than the peer's kernel takes before the peer reads.
std::size_t SendAll(int socket) {
  const std::vector<char> bytes(1 << 20);
  std::size_t sent = 0;
  for (ssize_t size = 0; size >= 0; sent += static_cast<std::size_t>(std::max<ssize_t>(size, 0)))
    size = ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent;
}

std::size_t ReadAll(int socket) {
  std::vector<char> bytes(1 << 16);
  std::size_t received = 0;
  for (ssize_t size = 0; (size = ::recv(socket, bytes.data(), bytes.size(), 0)) > 0;)
    received += static_cast<std::size_t>(size);
  return received;
}

TEST(GracefulClose, LosesNothingOfWhatWasSent) {
  const Connection pair;
  const std::size_t sent = SendAll(pair.here);
  std::thread leaving([&] {
    GracefulClose close(Clock::now() + std::chrono::seconds(60));
    EXPECT_EQ(GracefulClose::Current(), &close);
    close.Take(pair.here);
  });
  // The kernel answers it with a reset once the socket is closed.
  EXPECT_EQ(::send(pair.there, "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(ReadAll(pair.there), sent);
  ::close(pair.there);
  leaving.join();
  EXPECT_EQ(GracefulClose::Current(), nullptr);
}

TEST(GracefulClose, GivesUpOnAPeerThatDoesNotClose) {
  const Connection pair;
  {
    GracefulClose close(Clock::now() + std::chrono::milliseconds(20));
    close.Take(pair.here);
  }
  EXPECT_EQ(::fcntl(pair.here, F_GETFD), -1);
  ::close(pair.there);
}

}  // namespace
}  // namespace dtrun::gloo_plugin
