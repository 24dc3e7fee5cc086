#include "core/network/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::network {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Candidate Card(int index, const char* name, const char* address, int prefix, Kind kind = Kind::kPhysical) {
  Candidate one;
  one.index = index;
  one.interface = name;
  one.kind = kind;
  one.address = {asio::ip::make_address(address), prefix};
  return one;
}

// Hosts "node0" and so on, each on its own machine.
std::vector<HostOffer> Hosts(std::vector<std::vector<Candidate>> candidates) {
  std::vector<HostOffer> hosts;
  for (auto& one : candidates) {
    const std::string number = std::to_string(hosts.size());
    hosts.push_back({"node" + number, "machine" + number, {std::move(one), {}, {}}});
  }
  return hosts;
}

// All plausible attempts; connected if `works` returns true for the two candidates.
template <class Works>
Evidence Tried(std::vector<HostOffer> hosts, Works&& works) {
  Evidence evidence(std::move(hosts));
  const auto& all = evidence.hosts();
  for (std::size_t host = 0; host < all.size(); ++host) {
    std::vector<Attempt> attempts;
    const auto& own = all[host].offer.candidates;
    for (const int peer : evidence.PeersOf(static_cast<int>(host))) {
      const auto& theirs = all[static_cast<std::size_t>(peer)].offer.candidates;
      for (std::size_t from = 0; from < own.size(); ++from) {
        for (std::size_t to = 0; to < theirs.size(); ++to) {
          if (!Plausible(own[from], theirs[to], theirs)) continue;
          Attempt attempt{static_cast<int>(from), peer, static_cast<int>(to), "no answer", {}};
          if (works(own[from], theirs[to])) attempt.why.clear();
          attempts.push_back(attempt);
        }
      }
    }
    evidence.Add(static_cast<int>(host), attempts);
  }
  return evidence;
}

bool Always(const Candidate&, const Candidate&) { return true; }

// Two hosts with two cards each in overlapping networks; the packets of eth1's addresses take eth0.
Evidence Overlapping() {
  Evidence evidence(Hosts({{Card(2, "eth0", "192.168.3.15", 20), Card(3, "eth1", "192.168.5.15", 20)},
                           {Card(2, "eth0", "192.168.3.16", 20), Card(3, "eth1", "192.168.5.16", 20)}}));
  for (int host = 0; host < 2; ++host) {
    evidence.Add(host, {{0, 1 - host, 0, "", {}}, {1, 1 - host, 1, "", {}, "eth0"}});
  }
  return evidence;
}

TEST(Evidence, AnInterfaceThatItsPacketsLeaveByIsPreferred) {
  const Evidence evidence = Overlapping();
  const std::vector<Assignment> found = evidence.Assignments(4);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_THAT(found[0].candidates, ElementsAre(0, 0));
  EXPECT_THAT(evidence.DetoursOf(found[0]), IsEmpty());
  const auto detours = evidence.DetoursOf(found[1]);
  ASSERT_THAT(detours, SizeIs(2));
  EXPECT_EQ(detours[0].leaves_by, "eth0");
  EXPECT_EQ(detours[1].host, 1);
}

TEST(Evidence, AnInterfaceThatNoPacketLeavesByIsNotFaster) {
  const Evidence evidence = Overlapping();
  std::vector<Assignment> measured = evidence.Assignments(4);
  measured[0].bits_per_s = 1e9;
  measured[1].bits_per_s = 9e9;
  EXPECT_THAT(evidence.Best(measured).candidates, ElementsAre(0, 0));
}

TEST(Evidence, AnotherAddressOfTheSameInterfacesIsNotFasterUnlessARouterIsBetween) {
  const auto hosts = [](const char* second) {
    auto out = Hosts({{Card(2, "eth0", "10.5.0.1", 24), Card(2, "eth0", "10.6.0.1", 24)},
                      {Card(2, "eth0", second, 24), Card(2, "eth0", "10.6.0.2", 24)}});
    for (HostOffer& one : out) one.offer.candidates[1].first_address = false;
    return out;
  };
  for (const auto& [second, best] : {std::pair("10.5.0.2", 0), std::pair("10.7.0.2", 1)}) {
    const Evidence evidence = Tried(hosts(second), Always);
    std::vector<Assignment> measured = evidence.Assignments(4);
    for (Assignment& one : measured) one.bits_per_s = one.candidates[0] == 0 ? 1e9 : 9e9;
    EXPECT_THAT(evidence.Best(measured).candidates, ElementsAre(best, best)) << second;
  }
}

TEST(Evidence, OfTheAddressesOfOneInterfaceTheFirstIsPreferredAndThenThatOfSsh) {
  const auto three = [](const std::string& last) {
    std::vector<Candidate> out;
    for (const char* network : {"10.5.0.", "10.6.0.", "10.7.0."}) {
      out.push_back(Card(2, "eth0", (network + last).c_str(), 24));
      out.back().first_address = out.size() == 1;
    }
    return out;
  };
  auto hosts = Hosts({three("1"), three("2")});
  hosts[1].offer.candidates[2].of_ssh = true;
  EXPECT_THAT(Tried(hosts, Always).Assignments(1)[0].candidates, ElementsAre(0, 0));
  const auto but_the_first = [](const Candidate& from, const Candidate&) { return !from.first_address; };
  EXPECT_THAT(Tried(hosts, but_the_first).Assignments(1)[0].candidates, ElementsAre(2, 2));
}

TEST(Evidence, AnAddressThatAllHostsHaveBesideTheirOwnIsNoDuplicate) {
  auto hosts = Hosts({{Card(2, "eth0", "10.5.0.1", 24), Card(2, "eth0", "10.5.0.100", 24)},
                      {Card(2, "eth0", "10.5.0.2", 24), Card(2, "eth0", "10.5.0.100", 24)}});
  for (HostOffer& one : hosts) one.offer.candidates[1].first_address = false;
  EXPECT_THAT(Tried(hosts, Always).Duplicates(), IsEmpty());
}

TEST(Evidence, AVirtualBridgeThatHasThePeerInItsNetworkIsNamed) {
  auto hosts = Hosts({{Card(2, "eth0", "172.17.5.1", 24)}, {Card(2, "eth0", "172.17.6.1", 24)}});
  for (HostOffer& one : hosts)
    one.offer.left_out.push_back(
        {"docker0", Kind::kBridge, "172.17.0.1/16", "is a virtual bridge of this host"});
  const Evidence works = Tried(hosts, Always);
  EXPECT_TRUE(works.MayBeTaken({{0, 0}}));
  const Evidence fails = Tried(hosts, [](auto&, auto&) { return false; });
  EXPECT_THAT(fails.Obstacle(),
              AllOf(HasSubstr("no answer; docker0 of node0 (172.17.0.1/16) has 172.17.6.1 in its "
                              "network"),
                    HasSubstr("give that bridge another network")));
}

TEST(Evidence, AVirtualBridgeIsNotBlamedForANarrowerNetwork) {
  for (const char* const address : {"172.17.0.1/16", "172.18.0.1/16", "", "fe80::1/64"}) {
    auto hosts = Hosts({{Card(2, "eth0", "172.17.5.1", 24)}, {Card(2, "eth0", "172.17.5.2", 24)}});
    for (HostOffer& one : hosts) one.offer.left_out.push_back({"docker0", Kind::kBridge, address, ""});
    EXPECT_FALSE(Tried(hosts, Always).MayBeTaken({{0, 0}})) << address;
    EXPECT_THAT(Tried(hosts, [](auto&, auto&) { return false; }).Obstacle(),
                ::testing::Not(HasSubstr("docker0")));
  }
}

TEST(Evidence, AllPairsUpTo32HostsAndFewBeyond) {
  EXPECT_THAT(PairsToCheck(1), IsEmpty());
  EXPECT_THAT(PairsToCheck(3), SizeIs(3));
  EXPECT_THAT(PairsToCheck(32), SizeIs(32 * 31 / 2));
  const auto pairs = PairsToCheck(200);
  EXPECT_LE(pairs.size(), 5u * 200);
  for (int host = 1; host < 200; ++host) {
    EXPECT_TRUE(pairs.contains({0, host})) << host;
    EXPECT_TRUE(host + 1 == 200 || pairs.contains({host, host + 1})) << host;
  }
  EXPECT_EQ(pairs, PairsToCheck(200));
}

TEST(Evidence, OneAddressOnTwoHostsIsNotTried) {
  const Candidate docker = Card(5, "docker0", "172.17.0.1", 16);
  EXPECT_FALSE(Plausible(docker, docker, {docker}));
}

TEST(Evidence, AMateInTheOwnNetworkIsPreferredToRoutes) {
  const Candidate own = Card(2, "eth0", "10.0.0.1", 24);
  const Candidate mate = Card(2, "eth0", "10.0.0.2", 24), other = Card(3, "eth1", "10.1.0.2", 24);
  const Candidate v6 = Card(2, "eth0", "fd00::2", 64);
  EXPECT_TRUE(Plausible(own, mate, {mate, other}));
  EXPECT_FALSE(Plausible(own, other, {mate, other}));
  EXPECT_TRUE(Plausible(own, other, {other}));  // a router may connect them
  EXPECT_FALSE(Plausible(own, v6, {v6}));
}

TEST(Evidence, NamesMayDifferFromHostToHost) {
  const auto evidence =
      Tried(Hosts({{Card(2, "eth0", "10.0.0.1", 24)}, {Card(7, "ens3", "10.0.0.2", 24)}}), Always);
  const auto found = evidence.Assignments(4);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].candidates, ElementsAre(0, 0));
}

TEST(Evidence, ANetworkThatJoinsOnlySomeHostsIsNotTaken) {
  const auto evidence = Tried(Hosts({{Card(2, "eth0", "10.0.0.1", 24), Card(3, "eth1", "10.1.0.1", 24)},
                                     {Card(2, "eth0", "10.0.0.2", 24), Card(3, "eth1", "10.1.0.2", 24)},
                                     {Card(2, "eth0", "10.0.0.3", 24), Card(3, "eth1", "10.1.0.3", 24)}}),
                              [](const Candidate& from, const Candidate& to) {
                                return from.interface == "eth1" || to.address.ip.to_string() != "10.0.0.3";
                              });
  const auto found = evidence.Assignments(4);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].candidates, ElementsAre(1, 1, 1));
}

TEST(Evidence, BothWaysHaveToWork) {
  const auto evidence = Tried(
      Hosts({{Card(2, "eth0", "10.0.0.1", 24)}, {Card(2, "eth0", "10.0.0.2", 24)}}),
      [](const Candidate& from, const Candidate&) { return from.address.ip.to_string() == "10.0.0.1"; });
  EXPECT_THAT(evidence.Assignments(4), IsEmpty());
  EXPECT_THAT(evidence.Obstacle(),
              AllOf(HasSubstr("node1 eth0 10.0.0.2 to node0 eth0 10.0.0.1: no answer"),
                    Not(HasSubstr("node0 eth0 10.0.0.1 to")), HasSubstr("cluster.port_range")));
}

TEST(Evidence, HostsWithoutACommonFamilyAreNamed) {
  const auto evidence =
      Tried(Hosts({{Card(2, "eth0", "10.0.0.1", 24)}, {Card(2, "eth0", "fd00::2", 64)}}), Always);
  EXPECT_THAT(evidence.Obstacle(), HasSubstr("node0 to node1: no address of the one could reach"));
}

TEST(Evidence, ATunnelIsTakenOnlyWhereNothingElseIsConnected) {
  const auto hosts =
      Hosts({{Card(2, "eth0", "10.0.0.1", 24), Card(3, "wg0", "10.1.0.1", 24, Kind::kTunnel)},
             {Card(2, "eth0", "10.0.0.2", 24), Card(3, "wg0", "10.1.0.2", 24, Kind::kTunnel)}});
  auto evidence = Tried(hosts, Always);
  auto found = evidence.Assignments(4);
  ASSERT_THAT(found, SizeIs(2));
  for (Assignment& one : found) one.bits_per_s = one.candidates[0] == 1 ? 9e9 : 1e9;  // caused by a busy host
  EXPECT_THAT(evidence.Best(found).candidates, ElementsAre(0, 0));
  auto only = Tried(hosts, [](const Candidate& from, const Candidate& to) {
    return from.interface == "wg0" && to.interface == "wg0";
  });
  EXPECT_THAT(only.Best(only.Assignments(4)).candidates, ElementsAre(1, 1));
}

TEST(Evidence, TheFasterNetworkWinsWhateverTheOrder) {
  auto evidence = Tried(Hosts({{Card(2, "eth0", "10.0.0.1", 24), Card(3, "eth1", "10.1.0.1", 24)},
                               {Card(2, "eth0", "10.0.0.2", 24), Card(3, "eth1", "10.1.0.2", 24)}}),
                        Always);
  auto found = evidence.Assignments(4);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_THAT(found[0].candidates, ElementsAre(0, 0));
  found[0].bits_per_s = 1e9;
  found[1].bits_per_s = 1e10;
  EXPECT_THAT(evidence.Best(found).candidates, ElementsAre(1, 1));
  found[1].bits_per_s = 1.2e9;  // counts as equal: the lower index wins
  EXPECT_THAT(evidence.Best(found).candidates, ElementsAre(0, 0));
}

TEST(Evidence, LostPacketsCountMoreThanSpeed) {
  auto evidence = Tried(Hosts({{Card(2, "eth0", "10.0.0.1", 24), Card(3, "eth1", "10.1.0.1", 24)},
                               {Card(2, "eth0", "10.0.0.2", 24), Card(3, "eth1", "10.1.0.2", 24)}}),
                        Always);
  auto found = evidence.Assignments(4);
  found[0].bits_per_s = 1e9;
  found[0].loss = 0.1;
  found[1].bits_per_s = 1e8;
  EXPECT_THAT(evidence.Best(found).candidates, ElementsAre(1, 1));
  found[1].bits_per_s = 1e6;  // so slow that loss is the lesser problem
  EXPECT_THAT(evidence.Best(found).candidates, ElementsAre(0, 0));
}

TEST(Evidence, HostsWithOneAddressAreNamedWhateverWasSeen) {
  const auto evidence = Tried(Hosts({{Card(2, "eth0", "10.0.0.1", 24)},
                                     {Card(5, "ens3", "10.0.0.1", 24)},
                                     {Card(2, "eth0", "10.0.0.3", 24)}}),
                              [](const Candidate&, const Candidate&) { return false; });
  const char* const said = "10.0.0.1 is the address of node0 (eth0) and of node1 (ens3)";
  EXPECT_THAT(evidence.Duplicates(), ElementsAre(said));
  EXPECT_EQ(evidence.AttemptsOf(2).at(0).why, said);
  EXPECT_EQ(evidence.AttemptsOf(0).at(0).why, said);
  EXPECT_THAT(evidence.Obstacle(),
              AllOf(HasSubstr(std::string("node0 to node1: ") + said), Not(HasSubstr("no answer")),
                    HasSubstr("give every host an address of its own")));
}

TEST(Evidence, VirtualBridgesMayHaveOneAddressEverywhere) {
  const auto hosts =
      Hosts({{Card(2, "eth0", "10.0.0.1", 24), Card(5, "br-1", "172.18.0.1", 16, Kind::kBridge)},
             {Card(2, "eth0", "10.0.0.2", 24), Card(5, "br-1", "172.18.0.1", 16, Kind::kBridge)}});
  const auto evidence =
      Tried(hosts, [](const Candidate& from, const Candidate&) { return from.interface == "eth0"; });
  EXPECT_THAT(evidence.Duplicates(), IsEmpty());
  for (const Attempt& attempt : evidence.AttemptsOf(0))
    EXPECT_THAT(attempt.why, Not(HasSubstr("is the address")));
}

TEST(Evidence, AmongEqualsRdmaThenKindThenDefaultRouteDecide) {
  auto rdma = Card(4, "eth2", "10.2.0.1", 24), rdma2 = Card(4, "eth2", "10.2.0.2", 24);
  rdma.rdma = rdma2.rdma = "mlx5_0:1";
  auto routed = Card(5, "eth3", "10.3.0.1", 24), routed2 = Card(5, "eth3", "10.3.0.2", 24);
  routed.default_route = routed2.default_route = true;
  auto evidence = Tried(
      Hosts({{Card(2, "tun0", "10.0.0.1", 24, Kind::kTunnel), Card(3, "eth1", "10.1.0.1", 24), rdma, routed},
             {Card(2, "tun0", "10.0.0.2", 24, Kind::kTunnel), Card(3, "eth1", "10.1.0.2", 24), rdma2,
              routed2}}),
      Always);
  std::vector<int> order;
  for (const auto& one : evidence.Assignments(9)) order.push_back(one.candidates[0]);
  EXPECT_THAT(order, ElementsAre(2, 3, 1, 0));
}

TEST(Evidence, HostsOnOneMachineNeedNoCheck) {
  auto hosts = Hosts({{Card(2, "eth0", "10.0.0.1", 24)}, {Card(2, "eth0", "10.0.0.1", 24)}});
  hosts[1].machine = hosts[0].machine;
  const Evidence evidence(std::move(hosts));
  EXPECT_THAT(evidence.PeersOf(0), IsEmpty());
  EXPECT_THAT(evidence.Assignments(4), SizeIs(1));
}

TEST(Evidence, TheSearchEndsWhenNothingFits) {
  std::vector<std::vector<Candidate>> many(12);
  for (int host = 0; host < 12; ++host) {
    for (int i = 0; i < 20; ++i) {
      many[static_cast<std::size_t>(host)].push_back(
          Card(i, "eth", ("10.0." + std::to_string(i) + "." + std::to_string(host + 1)).c_str(), 24));
    }
  }
  const auto evidence = Tried(Hosts(std::move(many)), [](const Candidate& from, const Candidate&) {
    return from.address.ip.to_v4().to_bytes()[3] != 12;  // the last host answers no one
  });
  EXPECT_THAT(evidence.Assignments(4), IsEmpty());
  EXPECT_THAT(evidence.Obstacle(), HasSubstr("more pairs of hosts"));
}

}  // namespace
}  // namespace dtrun::network
