#include "core/network/weakness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/network/testing.h"

namespace dtrun::network {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A ring of hosts with eth0 and these measured rates and losses.
class Ring {
 public:
  Ring(const std::vector<double>& rates, std::vector<double> losses = {}) {
    std::vector<HostOffer> hosts;
    const std::size_t count = rates.size();
    losses.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      Candidate card;
      card.interface = "eth0";
      card.address = {asio::ip::make_address("10.5.0." + std::to_string(i + 1)), 24};
      hosts.push_back({"node" + std::to_string(i), std::to_string(i), {{card}, {}, {}}});
      measured.candidates.push_back(0);
      measured.links.push_back(
          {static_cast<int>(i), static_cast<int>((i + 1) % count), {rates[i], microseconds(9), losses[i]}});
    }
    measured.Conclude();
    decision.evidence = Evidence(std::move(hosts));
    decision.chosen = measured;
  }
  std::vector<std::string> Weak() const {
    std::vector<std::string> out;
    for (const Weakness& one : WeaknessesOf(decision, measured)) out.push_back(one.what);
    return out;
  }

  Assignment measured;
  Decision decision{Evidence({}), {}, {}, {}, true, {}};
};

TEST(Weakness, HealthyNetworksHaveNone) {
  EXPECT_THAT(Ring({1e10, 9e9, 8e9}).Weak(), IsEmpty());
  EXPECT_THAT(Ring({9e7, 9e7}).Weak(), IsEmpty());         // slow cards, all equal
  EXPECT_THAT(Ring({3e10, 3e10, 3e9}).Weak(), IsEmpty());  // a bandwidth probe is too short to tell
}

TEST(Weakness, TheSlowHostIsNamed) {
  EXPECT_THAT(Ring({1e6, 1.1e6, 1e10}).Weak(), ElementsAre("node1 is the slow host: 1.1 Mbit/s by its eth0"));
  EXPECT_THAT(Ring({1e9, 1e10, 1e10, 1e10, 9e8}).Weak(),
              ElementsAre("node0 is the slow host: 1.0 Gbit/s by its eth0"));
}

TEST(Weakness, OneSlowDirectionIsALink) {
  EXPECT_THAT(Ring({1e10, 1e10, 1e9}).Weak(),
              ElementsAre("slow links: 1.0 Gbit/s from eth0 of node2 to eth0 of node0"));
}

TEST(Weakness, ANetworkMayBeSlowAsAWhole) {
  EXPECT_THAT(Ring({1e6, 1e6}).Weak(),
              ElementsAre("the network is slow: 1.0 Mbit/s from eth0 of node0 to eth0 of "
                          "node1, 1.0 Mbit/s from eth0 of node1 to eth0 of node0"));
}

TEST(Weakness, AProbeThatDidNotPassIsNoRate) {
  EXPECT_THAT(Ring({1e10, 1e10, 0}).Weak(),
              ElementsAre("slow links: nothing from eth0 of node2 to eth0 of node0"));
}

TEST(Weakness, LostPacketsHavePlaces) {
  const Ring ring({1e8, 1e10, 1e10}, {0.098, 0, 0});
  EXPECT_EQ(ring.Weak().at(0), "packets get lost: 9.8 % from eth0 of node0 to eth0 of node1");
  EXPECT_THAT(ring.Weak(), SizeIs(2));  // and it is slow
}

TEST(Weakness, NothingMeasuredIsNotSlow) { EXPECT_THAT(SlowLinks(Assignment{{0, 0}}), IsEmpty()); }

TEST(Weakness, PacketsThatLeaveByAnotherInterfaceAreNamed) {
  Decision decision = TwoNetworks();
  decision.evidence.Add(0, {{1, 1, 1, "", {}, "eth0"}});
  EXPECT_TRUE(WeaknessesOf(decision, decision.chosen).empty());
  const auto found = WeaknessesOf(decision, decision.measured[1]);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "packets from eth1 10.6.0.1 of node1 to node2 leave by eth0");
  EXPECT_THAT(found[0].fix, ::testing::HasSubstr("ip rule add from 10.6.0.1 table 100"));
}

}  // namespace
}  // namespace dtrun::network
