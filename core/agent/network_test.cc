#include "core/agent/network.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/agent/testing.h"

namespace dtrun::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A host with cards, one unless more are asked for, that answers from the loop, as real ones do.
class CardHost final : public Host {
 public:
  CardHost(boost::asio::io_context& loop, int number) : loop_(loop), number_(number) {}

  void Do(const Command& command) override {
    if (const auto* prove = std::get_if<Prove>(&command)) {
      ++rounds;
      Proven proven;
      for (const net::Peer& peer : prove->peers) {
        const bool works = prove->by_device ? works_by_device : works_at_all;
        for (int card = 0; card < cards; ++card) {
          proven.attempts.push_back(
              {card, peer.host, card, works ? "" : "no answer", std::chrono::microseconds(9)});
        }
      }
      return Answer(std::move(proven));
    }
    if (const auto* measure = std::get_if<Measure>(&command)) {
      const double loss = measure->pace > 0 ? calm_loss : measure->from == 0 ? burst_loss : 0;
      if (measure->pace > 0) {
        paces.push_back(measure->pace);
        return Answer(Measured{{measure->pace, std::chrono::microseconds(9), loss}});
      }
      measured.push_back(measure->from);
      const double rate = bursts.empty() ? 1e9 : bursts.at(measured.size() - 1);
      return Answer(Measured{{rate, std::chrono::microseconds(9), loss}});
    }
    if (refusal) return Answer(Refused{*refusal});
    if (lost) return Answer(Lost{"its cable was pulled", false});
    Surveyed surveyed;
    for (int card = 0; card < cards; ++card) {
      net::Candidate one;
      one.interface = "eth" + std::to_string(card);
      one.index = card;
      one.address = {asio::ip::make_address(fmt::format("10.{}.0.{}", 5 + card, number_ + 1)), 24};
      surveyed.offer.candidates.push_back(std::move(one));
    }
    surveyed.offer.unmatched = unmatched;
    Answer(std::move(surveyed));
  }

  bool works_by_device = true, works_at_all = true, lost = false;
  std::optional<Error> refusal;
  std::vector<std::string> unmatched;
  int rounds = 0, cards = 1;
  std::vector<double> bursts;            // what its bursts show, one after another; empty: 1 Gbit/s
  std::vector<int> measured;             // cards, in the order of the bursts
  double burst_loss = 0, calm_loss = 0;  // of the first card
  std::vector<double> paces;             // of its calm bursts

 private:
  void Answer(Event event) {
    boost::asio::post(loop_, [this, event = std::move(event)] { Emit(event); });
  }

  boost::asio::io_context& loop_;
  const int number_;
};

class NetworkSearchTest : public ::testing::Test {
 protected:
  Result<net::Decision> Run(const std::string& rule = "auto") {
    NetworkSearch search(loop_, signals_, {{"node0", "m0", &first_}, {"node1", "m1", &second_}});
    return search.Run({{rule, "job.toml:4:1: network.interface"}, {rule, "job.toml:4:1: network.interface"}});
  }
  std::string ErrorOf(const std::string& rule = "auto") {
    const auto decision = Run(rule);
    return decision ? "" : decision.error().text;
  }

  testing::SocketPair control_;
  Lifeline lifeline_{"/", std::move(control_.ours)};
  boost::asio::io_context loop_;
  UserSignals signals_{loop_, lifeline_};
  CardHost first_{loop_, 0}, second_{loop_, 1};
};

TEST_F(NetworkSearchTest, DecidesAndMeasures) {
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_EQ(decision->CandidateOf(1).Text(), "eth0 10.5.0.2");
  EXPECT_EQ(decision->chosen.bits_per_s, 1e9);
  EXPECT_TRUE(decision->by_device);
  EXPECT_EQ(first_.rounds, 1);
}

TEST_F(NetworkSearchTest, TriesOnceMoreWithoutHoldingToInterfaces) {
  second_.works_by_device = false;
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_FALSE(decision->by_device);
  EXPECT_EQ(first_.rounds, 2);
}

TEST_F(NetworkSearchTest, WhatIsPreferredGetsASecondBurstBeforeItIsOverruled) {
  first_.cards = second_.cards = 2;
  first_.bursts = {1e8, 1e9, 1e9};
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_THAT(first_.measured, ElementsAre(0, 1, 0));
  EXPECT_EQ(decision->CandidateOf(0).interface, "eth0");
  EXPECT_EQ(decision->chosen.bits_per_s, 1e9);
}

TEST_F(NetworkSearchTest, TheFastestWins) {
  first_.cards = second_.cards = 2;
  second_.bursts = {1e8, 1e9, 2e8};
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_EQ(decision->CandidateOf(0).interface, "eth1");
}

TEST_F(NetworkSearchTest, TheFasterCardThatLosesPacketsIsNotTaken) {
  first_.cards = second_.cards = 2;
  first_.bursts = second_.bursts = {1e10, 2e8, 1e10, 2e8};
  first_.burst_loss = first_.calm_loss = 0.1;
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_EQ(decision->CandidateOf(0).interface, "eth1");
  EXPECT_EQ(decision->measured[0].loss, 0.1);
  EXPECT_THAT(first_.paces, ElementsAre(5e9));
}

TEST_F(NetworkSearchTest, WhatIsLostInARushAloneDoesNotCount) {
  first_.cards = second_.cards = 2;
  first_.bursts = second_.bursts = {1e10, 2e8};
  first_.burst_loss = 0.1;
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_EQ(decision->CandidateOf(0).interface, "eth0");
  EXPECT_EQ(decision->chosen.loss, 0);
}

TEST_F(NetworkSearchTest, AHostIsMeasuredAgainBeforeItIsCalledSlow) {
  second_.bursts = {1e6, 1e9};
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_EQ(decision->chosen.bits_per_s, 1e9);
}

TEST_F(NetworkSearchTest, NumbersThatAreNoneCountAsNothing) {
  second_.bursts = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                    std::numeric_limits<double>::quiet_NaN()};
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_EQ(decision->chosen.bits_per_s, 0);
}

TEST_F(NetworkSearchTest, WhatWasTriedStaysWhenNothingJoins) {
  second_.works_by_device = second_.works_at_all = false;
  NetworkSearch search(loop_, signals_, {{"node0", "m0", &first_}, {"node1", "m1", &second_}});
  EXPECT_FALSE(search.Run({{"auto", ""}, {"auto", ""}}));
  EXPECT_EQ(search.evidence().AttemptsOf(1).at(0).why, "no answer");
}

TEST_F(NetworkSearchTest, NamesHostsThatAreApart) {
  second_.works_by_device = second_.works_at_all = false;
  EXPECT_THAT(ErrorOf(), HasSubstr("node1 eth0 10.5.0.2 to node0 eth0 10.5.0.1: no answer"));
}

TEST_F(NetworkSearchTest, ARefusalHasThePlaceAndTheHost) {
  second_.refusal = Error{DTRUN_INVALID_ARGUMENT, "'etg0' is no interface of this host"};
  EXPECT_EQ(ErrorOf(), "job.toml:4:1: network.interface: host node1: 'etg0' is no interface of this host");
}

TEST_F(NetworkSearchTest, EveryHostThatRefusesIsNamed) {
  first_.refusal = Error{DTRUN_INVALID_ARGUMENT, "'etg0' is nothing here"};
  second_.refusal = Error{DTRUN_INVALID_ARGUMENT, "'etg0' is nothing there"};
  EXPECT_EQ(
      ErrorOf(),
      "job.toml:4:1: network.interface: host node0: 'etg0' is nothing here; host node1: 'etg0' is nothing "
      "there");
}

TEST_F(NetworkSearchTest, AnEntryThatNoHostHasIsASlip) {
  first_.unmatched = second_.unmatched = {"eth1"};
  EXPECT_THAT(ErrorOf("eth0,eth1"),
              AllOf(HasSubstr("job.toml:4:1"), HasSubstr("'eth1' is no interface of any host"),
                    HasSubstr("did you mean 'eth0'?")));
  second_.unmatched.clear();
  EXPECT_EQ(ErrorOf("eth0,eth1"), "");
}

TEST_F(NetworkSearchTest, AHostThatIsLostEndsIt) {
  first_.lost = true;
  EXPECT_THAT(ErrorOf(), HasSubstr("host node0 was lost: its cable was pulled"));
}

}  // namespace
}  // namespace dtrun::agent
