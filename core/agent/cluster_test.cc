#include "core/agent/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/agent/remote_host.h"
#include "core/plan/hosts.h"

namespace dtrun::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Summons, SurvivesItsLine) {
  const std::string digits(64, 'a');
  const Summons summons{"job",
                        {"10.0.0.1", "node0"},
                        4711,
                        *control::Key::FromHex(digits),
                        2,
                        {{1, "node1"}, {2, "node2"}},
                        std::chrono::seconds(300),
                        std::chrono::seconds(10),
                        "40000-40100"};
  const std::string line = ToLine(summons, digits);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = ParseSummons(line);
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed->names, summons.names);
  EXPECT_EQ(parsed->port, 4711);
  EXPECT_EQ(parsed->host, 2);
  EXPECT_EQ(parsed->nodes, summons.nodes);
  EXPECT_EQ(parsed->lost_after, std::chrono::seconds(10));
  EXPECT_EQ(parsed->port_range, "40000-40100");
  EXPECT_TRUE(std::equal(parsed->key.data(), parsed->key.data() + control::Key::kBytes, summons.key.data()));
}

TEST(Summons, RefusesWhatNoRootHasWrittenAndSaysWhatToDo) {
  for (const char* line : {"", "hello", "{}", "[1]", R"({"key": 3})"}) {
    const auto parsed = ParseSummons(line);
    ASSERT_FALSE(parsed) << line;
    EXPECT_THAT(parsed.error().text, HasSubstr("dtrun --config FILE"));
  }
}

TEST(Summons, FindsANodeBySlurmsNameForIt) {
  const std::map<int, std::string> nodes = {{1, "node1"}, {2, "node2"}};
  EXPECT_EQ(*NumberAmong(nodes, "node2"), 2);
  EXPECT_THAT(NumberAmong(nodes, "node3").error().text, HasSubstr("'node3'"));
  EXPECT_FALSE(NumberAmong(nodes, nullptr));
}

TEST(Machine, KnowsItselfUnderItsNamesAndAddresses) {
  EXPECT_TRUE(IsThisMachine("localhost"));
  EXPECT_TRUE(IsThisMachine("127.0.0.1"));
  EXPECT_TRUE(IsThisMachine(plan::HostName()));
  EXPECT_TRUE(IsThisMachine("somebody@" + plan::HostName()));
  EXPECT_FALSE(IsThisMachine("surely-another-host"));
  EXPECT_FALSE(IsThisMachine("192.0.2.1"));
  EXPECT_EQ(MachineIdentity(), MachineIdentity());
}

TEST(Machine, KnowsTheAddressesOfItsInterfaces) {
  EXPECT_TRUE(IsOwnAddress("127.0.0.1"));
  EXPECT_FALSE(IsOwnAddress("127.0.0.2"));
  EXPECT_FALSE(IsOwnAddress("localhost"));
  EXPECT_FALSE(IsOwnAddress("192.0.2.1"));
}

TEST(Machine, KnowsWhatTheNameServiceLeadsHere) {
  for (const std::string& host :
       {std::string("localhost"), std::string("127.3.2.1"), std::string("::1"), plan::HostName()}) {
    EXPECT_TRUE(LeadsHere(host)) << host;
  }
  EXPECT_FALSE(LeadsHere("192.0.2.1"));
  EXPECT_FALSE(LeadsHere("2001:db8::1"));
  EXPECT_FALSE(LeadsHere(""));
}

TEST(Machine, FindsTheAddressThatLeadsToAPeer) {
  EXPECT_EQ(AddressTowards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(AddressTowards("no-number"), "");
  EXPECT_THAT(OwnAddresses(), Not(::testing::Contains("127.0.0.1")));
}

TEST(AddressOf, TakesThePortAndTheBracketsAway) {
  EXPECT_EQ(AddressOf("10.0.0.7:5555"), "10.0.0.7");
  EXPECT_EQ(AddressOf("[fe80::1%2]:5555"), "fe80::1%2");
}

}  // namespace
}  // namespace dtrun::agent
