#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json.h"
#include "core/preflight/report.h"

namespace dtrun::preflight {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

network::HostOffer Host(const std::string& number, const std::string& last) {
  network::Candidate card;
  card.interface = "eth0";
  card.address = {asio::ip::make_address("10.5.0." + last), 24};
  return {"node" + number, "machine" + number, {{card}, {}, {}}};
}

network::Evidence Tried(const std::string& why_not_back) {
  network::Evidence evidence({Host("0", "1"), Host("1", "2")});
  evidence.Add(0, {{0, 1, 0, "", std::chrono::microseconds(9)}});
  evidence.Add(1, {{0, 0, 0, why_not_back, std::chrono::microseconds(9)}});
  return evidence;
}

TEST(CheckNetwork, SaysWhatWasChosen) {
  const network::Evidence evidence = Tried("");
  const network::Assignment chosen{{0, 0}, 1e9, std::chrono::microseconds(9)};
  const auto checks =
      CheckNetwork({network::Decision{evidence, {chosen}, chosen, {false, false}, true, {}}, evidence});
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_THAT(checks[0].what, HasSubstr("eth0 on all 2 hosts (10.5.0.1), 1.0 Gbit/s"));
  EXPECT_EQ(checks[1].what, "all 2 directions between hosts work on every tested interface");
  EXPECT_EQ(checks[1].level, Level::kOk);
}

TEST(CheckNetwork, WarnsOfLostPacketsAndOfSlowHosts) {
  const network::Evidence evidence = Tried("");
  network::Assignment chosen{{0, 0}};
  chosen.links = {{0, 1, {1e6, {}, 0.1}}, {1, 0, {1e9, {}, 0}}};
  chosen.Conclude();
  const auto checks =
      CheckNetwork({network::Decision{evidence, {chosen}, chosen, {false, false}, true, {}}, evidence});
  ASSERT_EQ(checks.size(), 4u);
  EXPECT_EQ(checks[1].what, "packets get lost: 10.0 % from eth0 of node0 to eth0 of node1");
  EXPECT_EQ(checks[1].level, Level::kWarning);
  EXPECT_EQ(checks[2].what, "slow links: 1.0 Mbit/s from eth0 of node0 to eth0 of node1");
  EXPECT_EQ(checks[2].level, Level::kWarning);
}

TEST(CheckNetwork, WithoutOneItShowsWhoReachesWhom) {
  const auto checks =
      CheckNetwork({Error{DTRUN_FAILED_PRECONDITION, "hosts cannot reach each other"}, Tried("no answer")});
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].level, Level::kProblem);
  EXPECT_EQ(checks[0].what, "hosts cannot reach each other");
  EXPECT_EQ(checks[1].what,
            "by which interfaces hosts reach each other\n"
            "from, to  node0  node1\n"
            "node0     .      eth0\n"
            "node1     none   .");
}

TEST(CheckNetwork, BeforeAnythingWasTriedThereIsOnlyTheError) {
  const auto checks =
      CheckNetwork({Error{DTRUN_INVALID_ARGUMENT, "'etg0' is not an interface"}, network::Evidence({})});
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].what, "'etg0' is not an interface");
}

TEST(Links, AreToldToPrograms) {
  const auto json = LinksToJson(Tried("no answer"));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["from"], "node0");
  EXPECT_THAT(json[0]["interfaces"], ElementsAre("eth0"));
  EXPECT_THAT(json[1]["interfaces"], IsEmpty());
  EXPECT_THAT(json[1]["failed"], ElementsAre("eth0 10.5.0.2 to eth0 10.5.0.1: no answer"));
}

}  // namespace
}  // namespace dtrun::preflight
