#include "core/network/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::network {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Candidate Card(const char* name, const std::string& address) {
  Candidate one;
  one.interface = name;
  one.address = {asio::ip::make_address(address), 24};
  return one;
}

// Hosts with two cards each: all first cards share a network, and so do all second ones.
Evidence Hosts(int count) {
  std::vector<HostOffer> hosts;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i), last = std::to_string(i + 1);
    hosts.push_back({"node" + number,
                     "machine" + number,
                     {{Card("eth0", "10.5.0." + last), Card("eth1", "10.6.0." + last)}, {}, {}}});
  }
  return Evidence(std::move(hosts));
}

// Every host tries every other with both cards; `why` returns the result.
template <class Why>
Evidence Tried(int count, Why&& why) {
  Evidence evidence = Hosts(count);
  for (int host = 0; host < count; ++host) {
    std::vector<Attempt> attempts;
    for (const int peer : evidence.PeersOf(host)) {
      for (const int card : {0, 1}) attempts.push_back({card, peer, card, why(host, peer, card), {}});
    }
    evidence.Add(host, attempts);
  }
  return evidence;
}

TEST(Links, TellByWhatEachHostReachesEachOther) {
  const Evidence evidence = Tried(3, [](int host, int peer, int card) {
    return card == 1 && (host == 2 || peer == 2) ? "no answer" : "";
  });
  const auto links = LinksOf(evidence);
  ASSERT_THAT(links, SizeIs(6));
  EXPECT_THAT(links[0].interfaces, ElementsAre("eth0", "eth1"));
  EXPECT_THAT(links[1].failed, ElementsAre("eth1 10.6.0.1 to eth1 10.6.0.3: no answer"));
  EXPECT_EQ(Matrix(evidence, links),
            "from, to  node0      node1      node2\n"
            "node0     .          eth0,eth1  eth0\n"
            "node1     eth0,eth1  .          eth0\n"
            "node2     eth0       eth0       .\n");
}

TEST(Links, NothingReachesIsSaid) {
  const Evidence evidence = Tried(2, [](int host, int, int) { return host == 1 ? "no answer" : ""; });
  EXPECT_EQ(Matrix(evidence, LinksOf(evidence)),
            "from, to  node0  node1\n"
            "node0     .      eth0,eth1\n"
            "node1     none   .\n");
}

TEST(Links, OfManyHostsThoseThatFailedAreShown) {
  const Evidence evidence =
      Tried(20, [](int host, int peer, int) { return (host == 3 && peer == 17) ? "no answer" : ""; });
  EXPECT_EQ(Matrix(evidence, LinksOf(evidence)),
            "from, to  node3      node17\n"
            "node3     .          none\n"
            "node17    eth0,eth1  .\n");
}

TEST(Broken, IsWhatReachesOnlySomeOfItsNetwork) {
  const Evidence evidence = Tried(
      3, [](int host, int peer, int card) { return card == 1 && host == 0 && peer == 2 ? "no answer" : ""; });
  EXPECT_THAT(Broken(evidence), ElementsAre("eth1 10.6.0.1 of node0 does not reach node2: no answer"));
}

TEST(Broken, IsNotWhatLeadsElsewhereOnEveryHost) {
  EXPECT_THAT(Broken(Tried(3, [](int, int, int card) { return card == 1 ? "no answer" : ""; })), IsEmpty());
}

TEST(Broken, IsWhatLosesLargeMessages) {
  EXPECT_THAT(
      Broken(Tried(
          2, [](int, int, int card) { return card == 1 ? std::string(kSmallOnly) + "; set the MTU" : ""; })),
      SizeIs(2));
}

}  // namespace
}  // namespace dtrun::network
