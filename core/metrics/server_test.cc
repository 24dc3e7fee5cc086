#include "core/metrics/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "core/base/fd.h"

namespace dtrun::metrics {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PageServerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Server> Open(std::uint16_t port = 0, std::string token = "") {
    auto server =
        Server::Open(loop_, {"127.0.0.1", port, std::move(token), "--set metrics.listen: "}, [this] {
          ++made_;
          return page_;
        });
    EXPECT_TRUE(server) << (server ? "" : server.error().text);
    return server ? *std::move(server) : nullptr;
  }
  static UniqueFd Connect(int port) {
    UniqueFd client(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return client;
  }
  static void Send(const UniqueFd& client, std::string_view text) {
    EXPECT_EQ(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Until the server has closed its side.
  std::string Receive(const UniqueFd& client) {
    std::string all;
    char bytes[65536];
    for (;;) {
      const ssize_t size = ::recv(client.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (size == 0 || (size < 0 && errno != EAGAIN)) return all;
      if (size > 0) all.append(bytes, static_cast<std::size_t>(size));
      if (size < 0) loop_.run_one();
    }
  }
  std::string Ask(int port, std::string_view text) {
    const UniqueFd client = Connect(port);
    Send(client, text);
    return Receive(client);
  }

  boost::asio::io_context loop_;
  std::string page_ = "a 1\n# EOF\n";
  int made_ = 0;
};

TEST_F(PageServerTest, AnswersWithThePage) {
  const auto server = Open();
  const std::string answer = Ask(server->port(), "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                            HasSubstr("application/openmetrics-text; version=1.0.0"),
                            EndsWith("\r\n\r\na 1\n# EOF\n")));
  EXPECT_THAT(Ask(server->port(), "HEAD /metrics HTTP/1.1\r\n\r\n"), EndsWith("\r\n\r\n"));
  EXPECT_THAT(Ask(server->port(), "GET /x HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  constexpr int kTimes = 30;
  for (int i = 0; i < kTimes; ++i) Ask(server->port(), "GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_LT(made_, kTimes) << "at most once a second";
}

TEST_F(PageServerTest, SendsALargePageToASlowClient) {
  page_ = std::string(8 << 20, 'x');
  const auto server = Open();
  EXPECT_GT(Ask(server->port(), "GET /metrics HTTP/1.1\r\n\r\n").size(), page_.size());
}

TEST_F(PageServerTest, ManySilentClientsKeepNobodyOut) {
  const auto server = Open();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(Connect(server->port()));
    loop_.poll();
  }
  EXPECT_THAT(Ask(server->port(), "GET /metrics HTTP/1.1\r\n\r\n"), EndsWith("# EOF\n"));
  EXPECT_EQ(Receive(silent.front()), "") << "the oldest was dropped";
}

TEST_F(PageServerTest, NeedsItsToken) {
  const auto server = Open(0, "0123456789abcdef");
  EXPECT_THAT(Ask(server->port(), "GET /metrics HTTP/1.1\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 401 "), HasSubstr("WWW-Authenticate: Bearer")));
  EXPECT_EQ(made_, 0);
  EXPECT_THAT(Ask(server->port(), "GET /metrics HTTP/1.1\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n"),
              EndsWith("# EOF\n"));
}

TEST_F(PageServerTest, APortInUseIsToldWithItsUser) {
  const auto server = Open();
  const auto second = Server::Open(
      loop_, {"127.0.0.1", static_cast<std::uint16_t>(server->port()), "", "--set metrics.listen: "}, {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().text, AllOf(StartsWith("--set metrics.listen: port "),
                                         HasSubstr("is in use by process " + std::to_string(::getpid())),
                                         HasSubstr("choose another one")));
  EXPECT_FALSE(Server::Open(loop_, {"192.0.2.1", 0, "", ""}, {}));
}

}  // namespace
}  // namespace dtrun::metrics
