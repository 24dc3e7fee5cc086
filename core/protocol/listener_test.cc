#include "core/protocol/listener.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <boost/asio/read.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include "core/base/fd.h"
#include "core/protocol/connection.h"
#include "core/protocol/testing.h"
#include "core/protocol/tls.h"
#include "core/wire/coder.h"

namespace dtrun::protocol {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// A client that sends `bytes` in plain text and waits for the end.
struct Stranger {
  Stranger(asio::io_context& loop, int port, std::string said = {}) : socket(loop), bytes(std::move(said)) {
    socket.connect({asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(port)});
    if (!bytes.empty()) asio::write(socket, asio::buffer(bytes));
    asio::async_read(socket, asio::buffer(sink), [this](const error_code& error, std::size_t) {
      if (error != asio::error::operation_aborted) dropped = true;  // otherwise this object is gone
    });
  }
  Tcp::socket socket;
  std::string bytes;
  std::array<char, 4096> sink;
  bool dropped = false;
};

// A client that knows the key and sends `bytes` instead of a Hello.
struct Insider {
  Insider(asio::io_context& loop, const Root& root, const std::string& bytes)
      : connection(std::make_shared<Connection>(Tcp::socket(loop), std::make_shared<Tls>(AKey(), "a"))) {
    connection->socket().connect(
        {asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(root.listener->port())});
    connection->Handshake(asio::ssl::stream_base::client, [this, bytes](const error_code& error) {
      ASSERT_FALSE(error) << error.message();
      connection->Write(bytes, [](const error_code&) {});
      connection->ReadFrame([this](const Result<std::string_view>& frame) {
        answer = frame ? DecodeAnswer(*frame).error().text : frame.error().text;
      });
    });
  }
  ~Insider() { connection->Close(); }
  std::shared_ptr<Connection> connection;
  std::string answer;
};

TEST(Listener, DropsPlainTextAndSaysSo) {
  asio::io_context loop;
  Root root(loop);
  Stranger stranger(loop, root.listener->port(), "GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(RunUntil(loop, [&] { return stranger.dropped; }));
  ASSERT_EQ(root.lines.size(), 1u);
  EXPECT_THAT(root.lines[0],
              MatchesRegex("control port [0-9]+: refused 127.0.0.1:[0-9]+: not TLS .does another "
                           "job use this address\\?."));
}

TEST(Listener, DropsRandomBytes) {
  asio::io_context loop;
  Root root(loop);
  Stranger zeros(loop, root.listener->port(), std::string(1000, '\0'));
  Stranger ones(loop, root.listener->port(), std::string(100'000, '\xff'));
  // A TLS record that announces more bytes than allowed.
  Stranger record(loop, root.listener->port(),
                  std::string("\x16\x03\x01\xff\xff\x01", 6) + std::string(70'000, 'x'));
  ASSERT_TRUE(RunUntil(loop, [&] { return zeros.dropped && ones.dropped && record.dropped; }));
  EXPECT_EQ(root.listener->refused(), 3u);
  EXPECT_TRUE(root.joined.empty());
}

TEST(Listener, CountsAPortScannerAndTellsNobody) {
  asio::io_context loop;
  Root root(loop);
  { Stranger scanner(loop, root.listener->port()); }
  ASSERT_TRUE(RunUntil(loop, [&] { return root.listener->refused() == 1; }));
  EXPECT_TRUE(root.lines.empty());
}

TEST(Listener, DropsTlsWithoutAKey) {
  asio::io_context loop;
  Root root(loop);
  asio::ssl::context context(asio::ssl::context::tls_client);
  asio::ssl::stream<Tcp::socket> stream(loop, context);
  stream.next_layer().connect(
      {asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(root.listener->port())});
  bool ended = false;
  error_code result;
  stream.async_handshake(asio::ssl::stream_base::client, [&](const error_code& error) {
    result = error;
    ended = true;
  });
  ASSERT_TRUE(RunUntil(loop, [&] { return ended && !root.lines.empty(); }));
  EXPECT_TRUE(result);
  EXPECT_THAT(root.lines[0], HasSubstr("TLS without the key of a job"));
}

TEST(Listener, RefusesAKeyHolderWithAMalformedHello) {
  asio::io_context loop;
  Root root(loop);
  Insider insider(loop, root, wire::EncodeFrame(std::string("not a hello")));
  ASSERT_TRUE(RunUntil(loop, [&] { return !insider.answer.empty(); }));
  EXPECT_THAT(insider.answer, HasSubstr("malformed hello of an agent"));
  EXPECT_EQ(root.listener->refused(), 1u);

  Insider large(loop, root, std::string("\xff\xff\xff\x7f", 4));
  ASSERT_TRUE(RunUntil(loop, [&] { return root.listener->refused() == 2; }));
  EXPECT_TRUE(root.joined.empty());
}

TEST(Listener, EndsASlowHandshakeAtItsLimitAndServesOthersMeanwhile) {
  asio::io_context loop;
  Root root(loop, [](Listener::Options& options) { options.hello_limit = seconds(2); });
  Stranger mute(loop, root.listener->port());
  Stranger slow(loop, root.listener->port(), "\x16\x03\x01");  // the rest of the record never comes
  Agent agent(loop, root.Way());
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_TRUE(agent.channel) << agent.error.text;
  EXPECT_FALSE(mute.dropped);
  ASSERT_TRUE(RunUntil(loop, [&] { return mute.dropped && slow.dropped && root.lines.size() == 2; }));
  EXPECT_THAT(root.lines[0], HasSubstr("did not identify itself in time"));
}

TEST(Listener, PushesTheOldestStrangerOutWhenThereAreTooMany) {
  asio::io_context loop;
  Root root(loop, [](Listener::Options& options) {
    options.hello_limit = std::chrono::hours(1);
    options.max_strangers = 8;
  });
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(std::make_unique<Stranger>(loop, root.listener->port()));
  Agent agent(loop, root.Way());
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_TRUE(agent.channel) << agent.error.text;
  ASSERT_TRUE(RunUntil(loop, [&] { return strangers[12]->dropped; }));
  EXPECT_TRUE(strangers[0]->dropped);
  EXPECT_FALSE(strangers[19]->dropped);
  EXPECT_EQ(root.listener->refused(), 13u);
}

// All descriptors are in use, most by strangers. A new client is still served at once.
TEST(Listener, PushesTheOldestStrangerOutWhenNoDescriptorIsLeft) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "the sanitizer of undefined behaviour needs descriptors: it asks by a pipe what memory is readable";
#endif
  asio::io_context loop;
  Root root(loop, [](Listener::Options& options) { options.hello_limit = std::chrono::hours(1); });
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 3; ++i) strangers.push_back(std::make_unique<Stranger>(loop, root.listener->port()));
  while (loop.run_one_for(milliseconds(200)) > 0) {
  }
  loop.restart();
  Stranger late(loop, root.listener->port(), "GET / HTTP/1.1\r\n\r\n");  // pending in the accept queue
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd next(::dup(0));  // the lowest free descriptor
  const rlimit full{static_cast<rlim_t>(next.get()), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  const bool heard = RunUntil(loop, [&] { return late.dropped; });
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(heard);
  EXPECT_TRUE(strangers[0]->dropped);
  EXPECT_FALSE(strangers[2]->dropped);
}

TEST(Listener, PutsTheRefusalsOfASecondIntoOneLine) {
  asio::io_context loop;
  Root root(loop);
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 10; ++i) {
    strangers.push_back(std::make_unique<Stranger>(loop, root.listener->port(), std::string(1000, '\0')));
  }
  ASSERT_TRUE(RunUntil(loop, [&] { return root.listener->refused() == 10; }));
  EXPECT_EQ(root.lines.size(), 1u);
  ASSERT_TRUE(RunUntil(loop, [&] { return root.lines.size() == 2; }));
  EXPECT_THAT(root.lines[1], HasSubstr("; and 8 more within a second"));
}

TEST(Listener, NamesWhoUsesAWantedPort) {
  asio::io_context loop;
  Root root(loop);
  for (const char* address : {"", "127.0.0.1"}) {
    auto second = Listener::Listen(
        loop, {.address = address, .port = root.listener->port(), .job = "a", .key = AKey(), .welcome = {}},
        {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, DTRUN_BUSY);
    EXPECT_THAT(second.error().text, AllOf(HasSubstr("port " + std::to_string(root.listener->port())),
                                           HasSubstr("process " + std::to_string(::getpid()))));
  }
}

TEST(Listener, MayListenAgainWhereConnectionsFadeAway) {
  asio::io_context loop;
  auto first = std::make_unique<Root>(loop);
  const int port = first->listener->port();
  Agent agent(loop, first->Way());
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended && !first->joined.empty(); }));
  first.reset();  // closes first, so its side is in TIME_WAIT
  agent.channel.reset();
  Root second(loop, [&](Listener::Options& options) { options.port = port; });
  ASSERT_TRUE(second.listener);
  EXPECT_EQ(second.listener->port(), port);
}

TEST(Listener, ListensOnEveryAddressOfBothFamilies) {
  asio::io_context loop;
  Root root(loop, [](Listener::Options& options) { options.address.clear(); });
  Agent four(loop, root.Way());
  ASSERT_TRUE(RunUntil(loop, [&] { return four.ended && root.joined.size() == 1; }));
  EXPECT_THAT(root.joined[0]->peer(), ::testing::StartsWith("127.0.0.1:"));
  error_code no_ipv6;
  Tcp::acceptor probe(loop);
  probe.open(Tcp::v6(), no_ipv6);
  if (!no_ipv6) probe.bind({asio::ip::address_v6::loopback(), 0}, no_ipv6);
  if (no_ipv6) GTEST_SKIP() << "this host has no IPv6";
  Dialer::Options way = root.Way();
  way.names = {"::1"};
  Agent six(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return six.ended && root.joined.size() == 2; }));
  EXPECT_THAT(root.joined[1]->peer(), ::testing::StartsWith("[::1]:"));
}

TEST(Listener, RefusesAnAddressThatIsNone) {
  asio::io_context loop;
  auto name = Listener::Listen(loop, {.address = "node0", .job = "a", .key = AKey(), .welcome = {}}, {});
  EXPECT_THAT(name.error().text, HasSubstr("'node0' to listen on is not numeric"));
  auto foreign =
      Listener::Listen(loop, {.address = "192.0.2.1", .job = "a", .key = AKey(), .welcome = {}}, {});
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().text, HasSubstr("no interface of this host has that address"));
}

TEST(Listener, RefusesALossLimitThatNobodyCanKeep) {
  asio::io_context loop;
  auto listener = Listener::Listen(loop,
                                   {.address = {},
                                    .job = "a",
                                    .key = AKey(),
                                    .welcome = {.host_name = "root", .loss_limit = milliseconds(1)}},
                                   {});
  ASSERT_FALSE(listener);
  EXPECT_THAT(listener.error().text, HasSubstr("a loss limit of 1ms is out of range; give one from 10ms"));
}

TEST(Listener, MayBeEndedByItsOwnHandlers) {
  asio::io_context loop;
  std::unique_ptr<Listener> listener;
  bool refused = false;
  auto result = Listener::Listen(loop, {.address = "127.0.0.1", .job = "a", .key = AKey(), .welcome = {}},
                                 {.admit = {}, .on_joined = {}, .on_refused = [&](const std::string&) {
                                    refused = true;
                                    listener.reset();
                                  }});
  ASSERT_TRUE(result) << result.error().text;
  listener = *std::move(result);
  Stranger loud(loop, listener->port(), "GET / HTTP/1.1\r\n\r\n");
  Stranger mute(loop, listener->port());
  ASSERT_TRUE(RunUntil(loop, [&] { return refused && loud.dropped && mute.dropped; }));
}

TEST(Listener, LeavesChannelsAloneWhenItEnds) {
  Pair pair;
  pair.root.listener.reset();
  pair.near.channel->Send("still");
  ASSERT_TRUE(pair.Until([&] { return pair.far.count == 1; }));
}

TEST(Listener, AdmitsSixtyFourAgentsAtOnce) {
  asio::io_context loop;
  Root root(loop);
  std::vector<std::unique_ptr<Agent>> agents;
  for (int i = 0; i < 64; ++i) agents.push_back(std::make_unique<Agent>(loop, root.Way()));
  ASSERT_TRUE(RunUntil(loop, [&] { return root.joined.size() == 64; }));
  EXPECT_EQ(root.listener->refused(), 0u);
}

}  // namespace
}  // namespace dtrun::protocol
