// Uses real sockets on loopback: 127.0.0.1, 127.0.0.2 and so on represent addresses of hosts.
#include "core/network/reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "core/base/endpoint.h"
#include "core/network/connectivity_check.h"
#include "core/network/handshake.h"

namespace dtrun::network {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const char* const kKey = "a key for this test";

Candidate CandidateAt(const char* address, int prefix = 8) {
  Candidate one;
  one.interface = "lo";
  one.kind = Kind::kLoopback;
  one.address = {asio::ip::make_address(address), prefix};
  one.mtu = 65536;
  return one;
}

class ReachTest : public ::testing::Test {
 protected:
  // Runs the loop until the attempts have ended.
  std::vector<Attempt> Try(const std::vector<Candidate>& own, std::vector<Peer> peers,
                           ReachOptions options = {}) {
    options.key = kKey;
    std::optional<std::vector<Attempt>> attempts;
    const Reach reach(loop_, options, own, std::move(peers),
                      [&](std::vector<Attempt> given) { attempts = std::move(given); });
    while (!attempts && loop_.run_one() > 0) {
    }
    return *attempts;
  }

  asio::io_context loop_;
};

TEST_F(ReachTest, AHostBehindItsListenerIsConnected) {
  Offer offer{{CandidateAt("127.0.0.2")}, {}, {}};
  const Listener listener(loop_, 1, kKey, &offer);
  ASSERT_THAT(offer.candidates, SizeIs(1));
  const auto attempts = Try({CandidateAt("127.0.0.1")}, {{1, offer.candidates}});
  ASSERT_THAT(attempts, SizeIs(1));
  EXPECT_EQ(attempts[0].why, "");
  EXPECT_EQ(attempts[0].peer, 1);
  EXPECT_GT(attempts[0].round_trip.count(), 0);
}

TEST_F(ReachTest, ItIsYou) {
  Offer own{{CandidateAt("127.0.0.2")}, {}, {}};
  const Listener listener(loop_, 0, kKey, &own);  // of the connecting host
  const auto attempts = Try({CandidateAt("127.0.0.1")}, {{1, own.candidates}});
  ASSERT_THAT(attempts, SizeIs(1));
  EXPECT_EQ(attempts[0].why, "this host itself answers there");
}

TEST_F(ReachTest, AnotherHostIsNamed) {
  Offer offer{{CandidateAt("127.0.0.2")}, {}, {}};
  const Listener listener(loop_, 2, kKey, &offer);
  EXPECT_EQ(Try({CandidateAt("127.0.0.1")}, {{1, offer.candidates}})[0].why, "host 2 answers there");
}

TEST_F(ReachTest, WhoDoesNotKnowTheKeyProvesNothing) {
  Offer offer{{CandidateAt("127.0.0.2")}, {}, {}};
  const Listener listener(loop_, 1, "another key", &offer);
  EXPECT_EQ(Try({CandidateAt("127.0.0.1")}, {{1, offer.candidates}})[0].why, "another program answers there");
}

TEST_F(ReachTest, AClosedPortRefuses) {
  Candidate closed = CandidateAt("127.0.0.2");
  {
    Offer offer{{closed}, {}, {}};
    const Listener listener(loop_, 1, kKey, &offer);
    closed.port = offer.candidates[0].port;
  }
  EXPECT_THAT(Try({CandidateAt("127.0.0.1")}, {{1, {closed}}})[0].why, HasSubstr("refused"));
}

// A socket that listens but never accepts: connections open, but get no answer.
class Silent {
 public:
  explicit Silent(asio::io_context& loop) : acceptor_(loop, {asio::ip::make_address("127.2.0.3"), 0}) {}
  Candidate candidate() {
    Candidate one = CandidateAt("127.2.0.3", 16);
    one.port = acceptor_.local_endpoint().port();
    return one;
  }

 private:
  Tcp::acceptor acceptor_;
};

TEST_F(ReachTest, AListenerWithoutAFreePortNamesTheRange) {
  asio::ip::tcp::acceptor holder(loop_, {asio::ip::make_address("127.0.0.1"), 0});
  const int taken = holder.local_endpoint().port();
  UsePortRange({taken, taken});
  Offer offer{{CandidateAt("127.0.0.1")}, {}, {}};
  const Listener listener(loop_, 1, kKey, &offer);
  UsePortRange({});
  ASSERT_THAT(offer.left_out, SizeIs(1));
  EXPECT_THAT(offer.left_out[0].why, HasSubstr("cannot be listened on: every port of cluster.port_range"));
}

TEST_F(ReachTest, SilenceEndsAtTheLimit) {
  Silent silent(loop_);
  ReachOptions options;
  options.limit = std::chrono::milliseconds(50);
  EXPECT_EQ(Try({CandidateAt("127.0.0.1")}, {{1, {silent.candidate()}}}, options)[0].why, "no answer");
}

TEST_F(ReachTest, ACandidateThatReachesNobodyIsNotWaitedForLong) {
  Silent silent(loop_);
  Offer offer{{CandidateAt("127.1.0.2", 16)}, {}, {}};
  const Listener listener(loop_, 1, kKey, &offer);
  // In two networks; only the silent peer is in reach of the second own candidate.
  const std::vector<Candidate> theirs = {offer.candidates[0], silent.candidate()};
  ReachOptions options;
  options.limit = std::chrono::hours(1);  // far beyond the test's own
  const auto attempts =
      Try({CandidateAt("127.1.0.1", 16), CandidateAt("127.2.0.1", 16)}, {{1, theirs}}, options);
  ASSERT_THAT(attempts, SizeIs(2));
  EXPECT_TRUE(attempts[0].connected());
  EXPECT_EQ(attempts[1].why, "no answer");
}

// A socket with a full accept queue: Linux drops further connection requests.
class Full {
 public:
  explicit Full(asio::io_context& loop) : acceptor_(loop), connected_(loop) {
    const Tcp::endpoint here(asio::ip::make_address("127.0.0.3"), 0);
    acceptor_.open(here.protocol());
    acceptor_.bind(here);
    acceptor_.listen(0);
    connected_.connect(acceptor_.local_endpoint());
  }
  Candidate candidate() const {
    Candidate one = CandidateAt("127.0.0.3");
    one.port = acceptor_.local_endpoint().port();
    return one;
  }

 private:
  Tcp::acceptor acceptor_;
  Tcp::socket connected_;
};

TEST_F(ReachTest, WhatIsNotConnectedIsNotWaitedForLong) {
  const Full full(loop_);
  Offer offer{{CandidateAt("127.0.0.2")}, {}, {}};
  const Listener listener(loop_, 1, kKey, &offer);
  ReachOptions options;
  options.limit = std::chrono::hours(1);  // far beyond the test's own
  const auto attempts =
      Try({CandidateAt("127.0.0.1")}, {{1, {offer.candidates[0], full.candidate()}}}, options);
  ASSERT_THAT(attempts, SizeIs(2));
  EXPECT_TRUE(attempts[0].connected());
  EXPECT_EQ(attempts[1].why, "no answer");
}

TEST_F(ReachTest, AnAddressThatIsNotOursCannotSend) {
  Offer offer{{CandidateAt("127.0.0.2")}, {}, {}};
  const Listener listener(loop_, 1, kKey, &offer);
  EXPECT_THAT(Try({CandidateAt("192.0.2.77")}, {{1, offer.candidates}})[0].why,
              HasSubstr("cannot send from it"));
}

TEST_F(ReachTest, NothingToTryEndsAtOnce) {
  EXPECT_THAT(Try({CandidateAt("127.0.0.1")}, {{1, {}}}), SizeIs(0));
}

TEST_F(ReachTest, ABandwidthProbeIsCounted) {
  Offer offer{{CandidateAt("127.0.0.2")}, {}, {}};
  const Listener listener(loop_, 1, kKey, &offer);
  std::optional<Throughput> seen;
  ReachOptions options;
  options.key = kKey;
  const BandwidthProbe bandwidth_probe(loop_, options, CandidateAt("127.0.0.1"), 1, offer.candidates[0],
                                       [&](Throughput t) { seen = t; });
  while (!seen && loop_.run_one() > 0) {
  }
  EXPECT_GT(seen->bits_per_s, 0);
  EXPECT_GT(seen->round_trip.count(), 0);
}

TEST_F(ReachTest, AListenerOnAnAddressOfNobodyIsLeftOut) {
  Offer offer{{CandidateAt("192.0.2.77"), CandidateAt("127.0.0.2")}, {}, {}};
  const Listener listener(loop_, 1, kKey, &offer);
  EXPECT_THAT(offer.candidates, SizeIs(1));
  ASSERT_THAT(offer.left_out, SizeIs(1));
  EXPECT_THAT(offer.left_out[0].why, HasSubstr("cannot be listened on"));
}

TEST(Hello, IsSealed) {
  const Hello hello{7, NewChallenge(), Purpose::kBandwidthProbe};
  const std::string bytes = HelloBytes(kKey, hello);
  ASSERT_EQ(bytes.size(), kHelloBytes);
  const auto read = ReadHello(kKey, bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->from, 7u);
  EXPECT_EQ(read->challenge, hello.challenge);
  EXPECT_EQ(read->purpose, Purpose::kBandwidthProbe);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] ^= 1;
    EXPECT_FALSE(ReadHello(kKey, changed)) << i;
  }
  EXPECT_FALSE(ReadHello("other", bytes));
  EXPECT_FALSE(ReadHello(kKey, bytes.substr(1)));
}

TEST(Hello, AnAnswerIsToOneChallenge) {
  const Challenge challenge = NewChallenge();
  const std::string bytes = AnswerBytes(kKey, challenge, 3);
  ASSERT_EQ(bytes.size(), kAnswerBytes);
  EXPECT_EQ(ReadAnswer(kKey, challenge, bytes), 3u);
  EXPECT_FALSE(ReadAnswer(kKey, NewChallenge(), bytes));
  EXPECT_FALSE(ReadAnswer("other", challenge, bytes));
}

}  // namespace
}  // namespace dtrun::network
