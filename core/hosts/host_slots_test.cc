#include "core/hosts/host_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::hosts {
namespace {

using ::testing::HasSubstr;

std::string SlotsError(const std::string& text) {
  const auto host = ParseHost(text);
  return host.ok() ? "no error" : host.error().text;
}

TEST(ParseHost, ReadsNamesAndAddressesWithAndWithoutSlots) {
  EXPECT_EQ(*ParseHost("node0"), (HostSlots{"node0", {}}));
  EXPECT_EQ(*ParseHost("node1.rack_2:4"), (HostSlots{"node1.rack_2", 4}));
  EXPECT_EQ(*ParseHost("10.0.0.1:2"), (HostSlots{"10.0.0.1", 2}));
  EXPECT_EQ(*ParseHost("[fe80::1]"), (HostSlots{"fe80::1", {}}));
  EXPECT_EQ(*ParseHost("[fe80::1%eth0]:2"), (HostSlots{"fe80::1%eth0", 2}));
  EXPECT_EQ(*ParseHost("me@node0:2"), (HostSlots{"me@node0", 2}));
  EXPECT_EQ(*ParseHost("me@[fd00::2]:2"), (HostSlots{"me@fd00::2", 2}));
}

TEST(ParseHost, ReadsWhatToTextWrites) {
  for (const char* text : {"node0", "node1:4", "[fe80::1%eth0]:2", "[::1]", "me@10.0.0.1:3", "me@[::1]:3"}) {
    EXPECT_EQ(ToText(*ParseHost(text)), text);
  }
}

TEST(ParseHost, RefusesSlotsOutOfRange) {
  for (const char* text :
       {"node:", "node:0", "node:-1", "node:4097", "node:2x", "node: 2", "[::1]:", "[::1]:0"}) {
    EXPECT_THAT(SlotsError(text), HasSubstr("is not a number of slots; expected 1 to 4096")) << text;
  }
}

TEST(ParseHost, AsksForBracketsAroundAnIpv6Address) {
  EXPECT_THAT(SlotsError("fe80::1"), HasSubstr("write an IPv6 address in brackets"));
  EXPECT_THAT(SlotsError("me@fe80::1"), HasSubstr("write an IPv6 address in brackets"));
  EXPECT_THAT(SlotsError("node:1:2"), HasSubstr("'node:1:2' has several colons"));
}

TEST(ParseHost, RefusesWhatIsNoAddressInBrackets) {
  EXPECT_THAT(SlotsError("[node0]"), HasSubstr("'node0' is not an IPv6 address"));
  EXPECT_THAT(SlotsError("[::1"), HasSubstr("lacks the closing ']'"));
  EXPECT_THAT(SlotsError("[::1]4"), HasSubstr("'4' after ']'"));
  EXPECT_THAT(SlotsError("[fe80::1%]"), HasSubstr("not an IPv6 address"));
  EXPECT_THAT(SlotsError("[fe80::1%a;b]"), HasSubstr("not an IPv6 address"));
}

TEST(ParseHost, RefusesNamesThatNoResolverTakes) {
  EXPECT_THAT(SlotsError(""), HasSubstr("name is empty"));
  EXPECT_THAT(SlotsError("no de"), HasSubstr("has no space; write --hosts a,b"));
  EXPECT_THAT(SlotsError("a;b"), HasSubstr("no ';'"));
  EXPECT_THAT(SlotsError("-oProxyCommand=x"), HasSubstr("no '='"));
  EXPECT_THAT(SlotsError("-v"), HasSubstr("starts with '-'"));
  EXPECT_THAT(SlotsError("-v@node0"), HasSubstr("starts with '-'"));
  EXPECT_THAT(SlotsError("me@"), HasSubstr("name is empty"));
  EXPECT_THAT(SlotsError("a@b@c"), HasSubstr("no '@'"));
  EXPECT_THAT(SlotsError(std::string(254, 'a')), HasSubstr("254 bytes"));
}

TEST(NaturallyBefore, CountsAsPeopleDo) {
  const std::vector<std::string> order = {"a",     "node",     "node1",  "node01",
                                          "node2", "node2-ib", "node10", "nodf"};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = 0; j < order.size(); ++j) {
      if (order[i] == "node1" && order[j] == "node01") continue;
      if (order[i] == "node01" && order[j] == "node1") continue;
      EXPECT_EQ(NaturallyBefore(order[i], order[j]), i < j) << order[i] << " " << order[j];
    }
  }
  EXPECT_NE(NaturallyBefore("node1", "node01"), NaturallyBefore("node01", "node1")) << "a strict order";
}

TEST(ParseHosts, KeepsTheOrder) {
  EXPECT_EQ(*ParseHosts({"b:2", "a"}), (std::vector<HostSlots>{{"b", 2}, {"a", {}}}));
}

TEST(ParseHosts, NamesBothPlacesOfADuplicate) {
  const auto hosts = ParseHosts({"a", "b", "a:2"});
  ASSERT_FALSE(hosts.ok());
  EXPECT_THAT(hosts.error().text,
              HasSubstr("items 1 and 3 are the same host 'a'; name it once, with its slots: a:3"));
}

TEST(ParseHosts, TakesNamesThatDifferInCaseForOneHost) {
  EXPECT_THAT(ParseHosts({"node", "NODE"}).error().text, HasSubstr("items 1 and 2 are the same host 'NODE'"));
}

TEST(ParseHosts, NamesTheItemThatIsWrong) {
  const auto hosts = ParseHosts({"a", "b:x"});
  ASSERT_FALSE(hosts.ok());
  EXPECT_THAT(hosts.error().text, HasSubstr("item 2: 'x' is not a number of slots"));
}

TEST(ParseHosts, RefusesAnEmptyList) { EXPECT_FALSE(ParseHosts({}).ok()); }

}  // namespace
}  // namespace dtrun::hosts
