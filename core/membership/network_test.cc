#include "core/membership/network.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/process/testing.h"

namespace dtrun::membership {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A host with network cards, one by default, that answers from the loop, as real ones do.
class CardHost final : public protocol::Host {
 public:
  CardHost(boost::asio::io_context& loop, int number) : loop_(loop), number_(number) {}

  void Do(const protocol::Command& command) override {
    if (const auto* check = std::get_if<protocol::CheckConnectivity>(&command)) {
      ++rounds;
      protocol::ConnectivityChecked connected;
      for (const network::Peer& peer : check->peers) {
        const bool works = check->by_device ? works_by_device : works_at_all;
        for (int card = 0; card < cards; ++card) {
          connected.attempts.push_back(
              {card, peer.host, card, works ? "" : "no answer", std::chrono::microseconds(9)});
        }
      }
      return Answer(std::move(connected));
    }
    if (const auto* measure = std::get_if<protocol::Measure>(&command)) {
      const double loss = measure->pace > 0 ? calm_loss : measure->from == 0 ? bandwidth_probe_loss : 0;
      if (measure->pace > 0) {
        paces.push_back(measure->pace);
        return Answer(protocol::Measured{{measure->pace, std::chrono::microseconds(9), loss}});
      }
      measured.push_back(measure->from);
      const double rate = bandwidth_probes.empty() ? 1e9 : bandwidth_probes.at(measured.size() - 1);
      return Answer(protocol::Measured{{rate, std::chrono::microseconds(9), loss}});
    }
    if (refusal) return Answer(protocol::Refused{*refusal});
    if (lost) return Answer(protocol::Lost{"its cable was pulled", false});
    protocol::Surveyed surveyed;
    for (int card = 0; card < cards; ++card) {
      network::Candidate one;
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
  std::vector<double> bandwidth_probes;            // results of successive bandwidth probes; empty: 1 Gbit/s
  std::vector<int> measured;                       // cards, in the order of the bandwidth probes
  double bandwidth_probe_loss = 0, calm_loss = 0;  // of the first card
  std::vector<double> paces;                       // of its calm bandwidth probes

 private:
  void Answer(protocol::Event event) {
    boost::asio::post(loop_, [this, event = std::move(event)] { Emit(event); });
  }

  boost::asio::io_context& loop_;
  const int number_;
};

class NetworkSearchTest : public ::testing::Test {
 protected:
  Result<network::Decision> Run(const std::string& rule = "auto") {
    NetworkSearch search(loop_, signals_, {{"node0", "m0", &first_}, {"node1", "m1", &second_}});
    return search.Run({{rule, "job.toml:4:1: network.interface"}, {rule, "job.toml:4:1: network.interface"}});
  }
  std::string ErrorOf(const std::string& rule = "auto") {
    const auto decision = Run(rule);
    return decision ? "" : decision.error().text;
  }

  process::testing::SocketPair control_;
  process::Lifeline lifeline_{"/", std::move(control_.ours)};
  boost::asio::io_context loop_;
  process::UserSignals signals_{loop_, lifeline_};
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

TEST_F(NetworkSearchTest, WhatIsPreferredGetsASecondProbeBeforeItIsOverruled) {
  first_.cards = second_.cards = 2;
  first_.bandwidth_probes = {1e8, 1e9, 1e9};
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_THAT(first_.measured, ElementsAre(0, 1, 0));
  EXPECT_EQ(decision->CandidateOf(0).interface, "eth0");
  EXPECT_EQ(decision->chosen.bits_per_s, 1e9);
}

TEST_F(NetworkSearchTest, TheFastestWins) {
  first_.cards = second_.cards = 2;
  second_.bandwidth_probes = {1e8, 1e9, 2e8};
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_EQ(decision->CandidateOf(0).interface, "eth1");
}

TEST_F(NetworkSearchTest, TheFasterCardThatLosesPacketsIsNotTaken) {
  first_.cards = second_.cards = 2;
  first_.bandwidth_probes = second_.bandwidth_probes = {1e10, 2e8, 1e10, 2e8};
  first_.bandwidth_probe_loss = first_.calm_loss = 0.1;
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_EQ(decision->CandidateOf(0).interface, "eth1");
  EXPECT_EQ(decision->measured[0].loss, 0.1);
  EXPECT_THAT(first_.paces, ElementsAre(5e9));
}

TEST_F(NetworkSearchTest, WhatIsLostInARushAloneDoesNotCount) {
  first_.cards = second_.cards = 2;
  first_.bandwidth_probes = second_.bandwidth_probes = {1e10, 2e8};
  first_.bandwidth_probe_loss = 0.1;
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_EQ(decision->CandidateOf(0).interface, "eth0");
  EXPECT_EQ(decision->chosen.loss, 0);
}

TEST_F(NetworkSearchTest, AHostIsMeasuredAgainBeforeItIsCalledSlow) {
  second_.bandwidth_probes = {1e6, 1e9};
  const auto decision = Run();
  ASSERT_TRUE(decision) << decision.error().text;
  EXPECT_EQ(decision->chosen.bits_per_s, 1e9);
}

TEST_F(NetworkSearchTest, NumbersThatAreNoneCountAsNothing) {
  second_.bandwidth_probes = {std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity(),
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

TEST_F(NetworkSearchTest, ChecksAgainAfterAFailureAndNamesThePairThatIsCutOff) {
  NetworkSearch search(loop_, signals_, {{"node0", "m0", &first_}, {"node1", "m1", &second_}});
  const std::vector<plan::NetworkRule> rules{{"auto", ""}, {"auto", ""}};
  ASSERT_TRUE(search.Run(rules));
  second_.works_at_all = false;
  const auto cut = search.CheckAgain(rules);
  ASSERT_TRUE(cut) << cut.error().text;
  EXPECT_THAT(cut->Apart(), ElementsAre(std::pair(0, 1)));
  EXPECT_THAT(cut->PairText(0, 1), HasSubstr("node1 eth0 10.5.0.2 to node0 eth0 10.5.0.1: no answer"));
  second_.works_at_all = true;
  const auto mended = search.CheckAgain(rules);
  ASSERT_TRUE(mended) << mended.error().text;
  EXPECT_TRUE(mended->Apart().empty());
  EXPECT_EQ(second_.measured.size(), 1u) << "it measures nothing";
}

TEST_F(NetworkSearchTest, NamesHostsThatAreApart) {
  second_.works_by_device = second_.works_at_all = false;
  EXPECT_THAT(ErrorOf(), HasSubstr("node1 eth0 10.5.0.2 to node0 eth0 10.5.0.1: no answer"));
}

TEST_F(NetworkSearchTest, ARefusalHasThePlaceAndTheHost) {
  second_.refusal = Error{DTRUN_INVALID_ARGUMENT, "'etg0' is not an interface of this host"};
  EXPECT_EQ(ErrorOf(),
            "job.toml:4:1: network.interface: host node1: 'etg0' is not an interface of this host");
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
              AllOf(HasSubstr("job.toml:4:1"), HasSubstr("no host has an interface 'eth1'"),
                    HasSubstr("did you mean 'eth0'?")));
  second_.unmatched.clear();
  EXPECT_EQ(ErrorOf("eth0,eth1"), "");
}

TEST_F(NetworkSearchTest, AHostThatIsLostEndsIt) {
  first_.lost = true;
  EXPECT_THAT(ErrorOf(), HasSubstr("host node0 was lost: its cable was pulled"));
}

}  // namespace
}  // namespace dtrun::membership
