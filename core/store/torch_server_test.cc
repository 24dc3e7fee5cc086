#include "core/store/torch_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <thread>

#include "core/store/testing/torch_bytes.h"

namespace dtrun::store {
namespace {

using ::testing::HasSubstr;
using namespace testing;  // NOLINT: of this folder

class TorchServerTest : public ::testing::Test {
 protected:
  void Serve(TorchServer::Options options) {
    UniqueFd bound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    ASSERT_EQ(::bind(bound.get(), reinterpret_cast<sockaddr*>(&address_), size), 0);
    ASSERT_EQ(::getsockname(bound.get(), reinterpret_cast<sockaddr*>(&address_), &size), 0);
    options.said = [this](const std::string& line) { said_ += line; };
    std::vector<UniqueFd> listeners;
    listeners.push_back(std::move(bound));
    auto server = TorchServer::Serve(loop_, std::move(listeners), std::move(options));
    ASSERT_TRUE(server) << server.error().text;
    server_ = *std::move(server);
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~TorchServerTest() override {
    boost::asio::post(loop_, [this] { server_.reset(); });
    if (thread_.joinable()) thread_.join();
  }

  UniqueFd Connect() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    return fd;
  }
  static void Write(const UniqueFd& fd, std::string_view bytes) {
    EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Reads this many bytes, or up to the end.
  static std::string Read(const UniqueFd& fd, std::size_t size) {
    std::string bytes(size, '\0');
    const ssize_t got = ::recv(fd.get(), bytes.data(), size, MSG_WAITALL);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }

  boost::asio::io_context loop_;
  std::unique_ptr<TorchServer> server_;
  std::thread thread_;
  sockaddr_in address_{};
  std::string said_;  // read it after the server is destroyed
};

TEST_F(TorchServerTest, ServesOldAndNewClientsTogether) {
  Serve({});
  const UniqueFd old = Connect(), young = Connect();
  Write(young, Validate() + Byte(13) + Number32(5));
  EXPECT_EQ(Read(young, 4), Number32(5));
  Write(young, Byte(6) + Count(1) + Text("/k"));  // waits
  Write(old, Byte(0) + Text("/k") + Text("v"));
  EXPECT_EQ(Read(young, 1), Byte(0));
  Write(young, Byte(3) + Text("/k"));
  EXPECT_EQ(Read(young, 9), Text("v"));
}

TEST_F(TorchServerTest, DropsWhoIsNoClientOfTorchAndNobodyElse) {
  Serve({});
  const UniqueFd client = Connect(), stranger = Connect();
  Write(stranger, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(Read(stranger, 1), "");
  Write(client, Byte(3) + Text("n") + Number(2));
  EXPECT_EQ(Read(client, 8), Number(2));
}

TEST_F(TorchServerTest, TakesSoManyClientsAndNoMore) {
  Serve({.max_clients = 2, .admits = {}, .said = {}});
  const UniqueFd one = Connect(), two = Connect();
  Write(one, Byte(6));
  EXPECT_EQ(Read(one, 8), Number(0));
  Write(two, Byte(6));
  EXPECT_EQ(Read(two, 8), Number(0));
  EXPECT_EQ(Read(Connect(), 1), "");
}

// Each idle client replaces the oldest idle one, never a rank.
TEST_F(TorchServerTest, PushesOutWhoAsksForNothing) {
  Serve({.max_clients = 8, .admits = {}, .said = {}});
  const UniqueFd rank = Connect();
  Write(rank, Byte(6));
  EXPECT_EQ(Read(rank, 8), Number(0));
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(Connect());
  const UniqueFd late = Connect();
  Write(late, Byte(0) + Text("k") + Text("v"));
  Write(late, Byte(2) + Text("k"));
  EXPECT_EQ(Read(late, 9), Text("v"));
  Write(rank, Byte(2) + Text("k"));
  EXPECT_EQ(Read(rank, 9), Text("v"));
  EXPECT_EQ(Read(idle.front(), 1), "") << "the oldest goes";
}

TEST_F(TorchServerTest, TakesNobodyOfAnotherUserWhereItKnows) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may be another user";
  Serve({.admits = [](uid_t user) { return user == 0; }, .said = {}});
  const UniqueFd rank = Connect();
  Write(rank, Byte(6));
  EXPECT_EQ(Read(rank, 8), Number(0));
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    char byte = 0;
    const UniqueFd socket(::setuid(4242) == 0 ? ::socket(AF_INET, SOCK_STREAM, 0) : -1);
    const bool came = ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_) == 0;
    ::send(socket.get(), "\6", 1, MSG_NOSIGNAL);
    ::_exit(came && ::recv(socket.get(), &byte, 1, 0) <= 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
  EXPECT_EQ(status, 0) << "it was answered";
}

TEST_F(TorchServerTest, LetsAClientWaitThatDoesNotRead) {
  Serve({});
  const UniqueFd greedy = Connect(), other = Connect();
  Write(greedy, Byte(0) + Text("k") + Text(std::string(1 << 20, 'x')));
  std::string gets;
  for (int i = 0; i < 100; ++i) gets += Byte(2) + Text("k");
  Write(greedy, gets);
  Write(other, Byte(6));
  EXPECT_EQ(Read(other, 8).size(), 8u) << "it is served meanwhile";
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Read(greedy, 8 + (1 << 20)).size(), 8u + (1 << 20)) << i;
}

}  // namespace
}  // namespace dtrun::store
