#include "core/protocol/dialer.h"

#include <gmock/gmock.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "core/protocol/testing.h"

namespace dtrun::protocol {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A resolver that fails `failures` times, then returns the address.
Resolver LateResolver(int failures, const char* address = "127.0.0.1") {
  auto left = std::make_shared<int>(failures);
  return [left, address](asio::io_context& loop, const std::string& name,
                         const std::function<void(Addresses)>& done) {
    if ((*left)-- > 0) {
      asio::post(loop, [done, name] {
        done(Error{DTRUN_NOT_FOUND, "'" + name + "' does not resolve: not yet"});
      });
      return std::shared_ptr<void>();
    }
    return ResolveBySystem(loop, address, done);
  };
}

TEST(Dialer, JoinsAndTellsBothSidesWhoIsThere) {
  asio::io_context loop;
  Root root(loop);
  Agent agent(loop, root.Way());
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended && !root.joined.empty(); }));
  ASSERT_TRUE(agent.channel) << agent.error.text;
  EXPECT_EQ(agent.welcome.host_name, "root");
  EXPECT_EQ(root.hellos[0].host_index, 3);
  EXPECT_EQ(root.hellos[0].host_name, "node3");
  EXPECT_EQ(agent.channel->peer(), "127.0.0.1:" + std::to_string(root.listener->port()));
  EXPECT_THAT(root.joined[0]->peer(), StartsWith("127.0.0.1:"));
  EXPECT_EQ(agent.dialer->tries(), 1);
}

TEST(Dialer, WaitsForANameThatDoesNotResolveYet) {
  asio::io_context loop;
  Root root(loop);
  Dialer::Options way = root.Way();
  way.names = {"node0"};
  way.resolver = LateResolver(3);
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_TRUE(agent.channel) << agent.error.text;
  EXPECT_EQ(agent.dialer->tries(), 4);
  EXPECT_EQ(agent.dialer->last_error(), "'node0' does not resolve: not yet");
}

TEST(Dialer, WaitsForARootThatDoesNotListenYet) {
  asio::io_context loop;
  auto root = std::make_unique<Root>(loop);
  const Dialer::Options way = root->Way();
  root.reset();
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.dialer->tries() > 2; }));
  EXPECT_THAT(agent.dialer->last_error(), HasSubstr("refused"));
  Root late(loop, [&](Listener::Options& options) { options.port = way.port; });
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_TRUE(agent.channel) << agent.error.text;
}

TEST(Dialer, TriesTheNextNameAndAddress) {
  asio::io_context loop;
  Root root(loop);
  Dialer::Options way = root.Way();
  way.names = {"127.0.0.99", "127.0.0.1"};
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_TRUE(agent.channel) << agent.error.text;
  EXPECT_EQ(agent.dialer->tries(), 2);
}

TEST(Dialer, GivesUpAtTheDeadlineAndSaysWhatItMet) {
  asio::io_context loop;
  Dialer::Options way = Root(loop).Way();  // the root is already gone
  way.deadline = milliseconds(300);
  way.resolver = LateResolver(1'000'000);
  way.names = {"nowhere.invalid"};
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_EQ(agent.error.code, DTRUN_TIMEOUT);
  EXPECT_THAT(agent.error.text, AllOf(HasSubstr("could not join the root at nowhere.invalid port " +
                                                std::to_string(way.port) + " within 300ms"),
                                      HasSubstr("tries; last error: 'nowhere.invalid' does not resolve"),
                                      HasSubstr("check that")));
  EXPECT_GT(agent.dialer->tries(), 1);
}

TEST(Dialer, SaysWhatItWaitsForWhenNothingAnsweredAtAll) {
  asio::io_context loop;
  Dialer::Options way = Root(loop).Way();
  way.deadline = milliseconds(50);
  way.names = {"node0"};
  way.resolver = [](asio::io_context&, const std::string&, const std::function<void(Addresses)>&) {
    return std::shared_ptr<void>();
  };
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_THAT(agent.error.text, HasSubstr("last error: the lookup of 'node0' has not finished"));
}

TEST(Dialer, PassesAnAddressThatTakesTheConnectionAndStaysSilent) {
  asio::io_context loop;
  Tcp::acceptor mute(loop, {asio::ip::make_address("127.0.0.2"), 0});
  Root root(loop, [&](Listener::Options& options) { options.port = mute.local_endpoint().port(); });
  Dialer::Options way = root.Way();
  way.names = {"127.0.0.2", "127.0.0.1"};
  way.try_limit = seconds(3600);
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_TRUE(agent.channel) << agent.error.text;
  EXPECT_EQ(agent.dialer->tries(), 2);
}

TEST(Dialer, TellsWhoGivesNoAnswerLongBeforeItGivesHimUp) {
  asio::io_context loop;
  Tcp::acceptor mute(loop, {asio::ip::make_address("127.0.0.2"), 0});
  Dialer::Options way = Root(loop).Way();
  way.port = mute.local_endpoint().port();
  way.names = {"127.0.0.2", "127.0.0.3"};
  way.try_limit = seconds(3600);
  way.patience = milliseconds(20);
  std::vector<std::string> told;
  const auto dialer =
      Dialer::Start(loop, way, {{}, {}, [&](const std::string& line) { told.push_back(line); }});
  const std::string port = ":" + std::to_string(way.port);
  const std::string both =
      "cannot reach 127.0.0.2" + port + ": no answer; 127.0.0.3" + port + ": Connection refused";
  ASSERT_TRUE(RunUntil(loop, [&] { return dialer->trouble() == both; }));
  EXPECT_EQ(told.back(), both);
  const std::size_t lines = told.size();
  const int tries = dialer->tries();
  ASSERT_TRUE(RunUntil(loop, [&] { return dialer->tries() > tries + 3; }));  // failures are retried
  EXPECT_EQ(told.size(), lines);                                             // and reported once
}

TEST(Dialer, TriesManyAddressesSideBySide) {
  asio::io_context loop;
  std::vector<std::unique_ptr<Tcp::acceptor>> mute;
  Root root(loop);
  Dialer::Options way = root.Way();
  way.names.clear();
  for (int i = 2; i < 60; ++i) {
    way.names.push_back("127.0.0." + std::to_string(i));
    const Tcp::endpoint endpoint(asio::ip::make_address(way.names.back()),
                                 static_cast<std::uint16_t>(way.port));
    mute.push_back(std::make_unique<Tcp::acceptor>(loop, endpoint));
  }
  way.names.push_back("127.0.0.1");
  way.try_limit = seconds(3600);
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_TRUE(agent.channel) << agent.error.text;
  EXPECT_EQ(root.hellos.size(), 1u);
  EXPECT_TRUE(root.lines.empty());
}

TEST(Dialer, JoinsOnceWhenSeveralWaysLeadThere) {
  asio::io_context loop;
  Root root(loop, [](Listener::Options& options) { options.address = ""; });
  Dialer::Options way = root.Way();
  way.names = {"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"};
  way.stagger = way.spread = Nanoseconds(1);
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended && !root.joined.empty(); }));
  End near, far;
  near.Take(std::move(root.joined[0]));
  far.Take(std::move(agent.channel));
  far.channel->Send("hello");
  ASSERT_TRUE(RunUntil(loop, [&] { return near.count == 1; }));
  EXPECT_EQ(root.hellos.size(), 1u);
  EXPECT_TRUE(root.lines.empty());
}

// A stream between the two without a network.
struct Bypass {
  explicit Bypass(Root& root)
      : detour{"root (through ssh)", [this, &root] {
                 ++opened;
                 int ends[2];
                 EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
                 root.listener->Enter(UniqueFd(ends[0]), "node3:22");
                 return UniqueFd(ends[1]);
               }} {}
  int opened = 0;
  Detour detour;
};

TEST(Dialer, TakesTheDetourWhenNoAddressLeadsToTheRoot) {
  asio::io_context loop;
  Root root(loop);
  Tcp::acceptor mute(loop, {asio::ip::make_address("127.0.0.2"), 0});
  for (const char* name : {"127.0.0.3", "nowhere.invalid", "127.0.0.2"}) {
    Bypass bypass(root);
    Dialer::Options way = root.Way();
    way.names = {name};
    way.port = mute.local_endpoint().port();
    way.resolver = std::string(name) == "nowhere.invalid" ? LateResolver(1'000'000) : ResolveBySystem;
    way.try_limit = milliseconds(500);  // a root that accepts a connection may be slow
    way.detour_after = milliseconds(50);
    way.detour = bypass.detour;
    const std::size_t before = root.joined.size();
    Agent agent(loop, way);
    ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended && root.joined.size() > before; }));
    ASSERT_TRUE(agent.channel) << agent.error.text;
    EXPECT_EQ(bypass.opened, 1);
    EXPECT_EQ(agent.channel->peer(), "root (through ssh)");
    EXPECT_EQ(root.joined.back()->peer(), "node3:22");
    EXPECT_FALSE(agent.dialer->trouble().empty());
    End near, far;
    near.Take(std::move(root.joined.back()));
    far.Take(std::move(agent.channel));
    far.channel->Send("over");
    near.channel->Send("and out");
    ASSERT_TRUE(RunUntil(loop, [&] { return near.count == 1 && far.count == 1; }));
    near.channel->Close();
    ASSERT_TRUE(RunUntil(loop, [&] { return !far.losses.empty(); }));
    EXPECT_TRUE(far.losses[0].closed);
  }
}

TEST(Dialer, TakesNoDetourWhereAnAddressLeadsToTheRoot) {
  asio::io_context loop;
  Root root(loop);
  Bypass bypass(root);
  Dialer::Options way = root.Way();
  way.detour_after = seconds(3600);
  way.detour = bypass.detour;
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_TRUE(agent.channel) << agent.error.text;
  EXPECT_EQ(bypass.opened, 0);
}

TEST(Dialer, TakesTheDetourAgainWhenTheRootWasBusy) {
  asio::io_context loop;
  Root root(loop);
  Bypass bypass(root);
  int asked = 0;
  root.admit = [&](const Hello&, const std::string&) {
    return ++asked < 3 ? Status(Error{DTRUN_BUSY, "the world is being restarted"}) : Status();
  };
  Dialer::Options way = root.Way();
  way.names = {"127.0.0.3"};
  way.detour_after = milliseconds(5);
  way.detour = bypass.detour;
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_TRUE(agent.channel) << agent.error.text;
  EXPECT_EQ(bypass.opened, 3);
}

TEST(Dialer, StopsAtOnceWhenItsKeyIsWrong) {
  asio::io_context loop;
  Root root(loop);
  Dialer::Options way = root.Way();
  way.key = AKey(kOtherDigits);
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended && !root.lines.empty(); }));
  EXPECT_EQ(agent.error.code, DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(agent.error.text, HasSubstr("does not know the key of job 'a'"));
  EXPECT_EQ(agent.dialer->tries(), 1);
  EXPECT_THAT(root.lines[0], HasSubstr("it claims job 'a' with another key than ours"));
  EXPECT_TRUE(root.joined.empty());
}

TEST(Dialer, StopsAtOnceAtTheRootOfAnotherJob) {
  asio::io_context loop;
  Root root(loop);
  Dialer::Options way = root.Way();
  way.hello.job = "b";
  Agent same_key(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return same_key.ended && !root.lines.empty(); }));
  EXPECT_THAT(same_key.error.text, HasSubstr("this root is of job 'a', this host belongs to job 'b'"));
  EXPECT_EQ(same_key.dialer->tries(), 1);

  way.key = AKey(kOtherDigits);
  Agent other_key(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return other_key.ended && root.lines.size() == 2; }));
  EXPECT_THAT(other_key.error.text, HasSubstr("another job's root uses this address"));
  EXPECT_THAT(root.lines[1], HasSubstr("it belongs to job 'b', this is job 'a'"));
}

TEST(Dialer, JoinsAJobOfAnyName) {
  asio::io_context loop;
  for (const std::string& job : {std::string(), std::string(1000, 'j'), std::string("\xc3\xa4\n")}) {
    Root root(loop, [&](Listener::Options& options) { options.job = job; });
    Dialer::Options way = root.Way();
    way.hello.job = job;
    Agent agent(loop, way);
    ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
    EXPECT_TRUE(agent.channel) << agent.error.text;
  }
}

TEST(Dialer, StopsAtOnceWhenVersionsDiffer) {
  asio::io_context loop;
  Root root(loop);
  Dialer::Options way = root.Way();
  way.hello.version = "0.0.9";
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_THAT(agent.error.text, HasSubstr("the root runs dtrun " DTRUN_VERSION ", this host 0.0.9; install"));
  EXPECT_EQ(agent.dialer->tries(), 1);
}

TEST(Dialer, ShowsWhyTheRootDidNotAdmitItAndTriesAgainWhenItMay) {
  asio::io_context loop;
  Root root(loop);
  root.admit = [](const Hello&, const std::string&) {
    return Error{DTRUN_FAILED_PRECONDITION, "host 3 has joined already from 10.0.0.4"};
  };
  Agent agent(loop, root.Way());
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended; }));
  EXPECT_THAT(agent.error.text, HasSubstr("refused this host: host 3 has joined already from 10.0.0.4"));

  int asked = 0;
  root.admit = [&](const Hello&, const std::string&) {
    return ++asked < 3 ? Status(Error{DTRUN_BUSY, "the world is being restarted"}) : Status();
  };
  Agent patient(loop, root.Way());
  ASSERT_TRUE(RunUntil(loop, [&] { return patient.ended; }));
  EXPECT_TRUE(patient.channel) << patient.error.text;
  EXPECT_EQ(patient.dialer->tries(), 3);
  EXPECT_THAT(patient.dialer->last_error(), HasSubstr("the world is being restarted"));
}

TEST(Dialer, IsQuietOnceDropped) {
  asio::io_context loop;
  Root root(loop);
  Agent agent(loop, root.Way());
  agent.dialer.reset();
  loop.restart();
  while (loop.poll_one() > 0) {
  }
  EXPECT_FALSE(agent.ended);
  EXPECT_TRUE(root.joined.empty());
}

// A server at the root's address that does not know the key.
TEST(Dialer, DoesNotTrustAServerThatShowsACertificateInsteadOfTheKey) {
  asio::io_context loop;
  asio::ssl::context context(asio::ssl::context::tlsv13_server);
  EVP_PKEY* pair = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, pair);
  X509_sign(certificate, pair, EVP_sha256());
  SSL_CTX_use_certificate(context.native_handle(), certificate);
  SSL_CTX_use_PrivateKey(context.native_handle(), pair);
  X509_free(certificate);
  EVP_PKEY_free(pair);

  Tcp::acceptor acceptor(loop, {asio::ip::make_address("127.0.0.1"), 0});
  int served = 0;
  std::vector<std::unique_ptr<asio::ssl::stream<Tcp::socket>>> streams;
  std::function<void()> accept = [&] {
    acceptor.async_accept([&](const error_code& error, Tcp::socket socket) {
      if (error) return;
      streams.push_back(std::make_unique<asio::ssl::stream<Tcp::socket>>(std::move(socket), context));
      streams.back()->async_handshake(asio::ssl::stream_base::server, [&](const error_code&) { ++served; });
      accept();
    });
  };
  accept();
  Dialer::Options way = Root(loop).Way();
  way.port = acceptor.local_endpoint().port();
  Agent agent(loop, way);
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.dialer->tries() > 2 && served > 1; }));
  EXPECT_FALSE(agent.ended);
  EXPECT_THAT(agent.dialer->last_error(), HasSubstr("not the root of a dtrun job"));
}

}  // namespace
}  // namespace dtrun::protocol
