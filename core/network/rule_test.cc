#include "core/network/rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::network {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Address AddressAt(const char* text, int prefix) { return {asio::ip::make_address(text), prefix}; }

Interface CardOf(int index, const char* name, std::vector<Address> addresses, Kind kind = Kind::kPhysical) {
  Interface one;
  one.index = index;
  one.name = name;
  one.kind = kind;
  one.up = one.carrier = true;
  one.mtu = 1500;
  one.addresses = std::move(addresses);
  return one;
}

std::vector<Interface> Usual() {
  return {CardOf(1, "lo", {AddressAt("127.0.0.1", 8), AddressAt("::1", 128)}, Kind::kLoopback),
          CardOf(2, "eth1", {AddressAt("10.0.0.5", 24), AddressAt("fd00::5", 64), AddressAt("fe80::5", 64)}),
          CardOf(3, "eth10", {AddressAt("10.1.0.5", 24)}),
          CardOf(4, "eth1.100", {AddressAt("10.2.0.5", 24)}, Kind::kVlan),
          CardOf(5, "docker0", {AddressAt("172.17.0.1", 16)}, Kind::kBridge),
          CardOf(6, "tun0", {AddressAt("10.8.0.5", 24)}, Kind::kTunnel)};
}

Offer Apply(const char* text, const std::vector<Interface>& all = Usual()) {
  const auto rule = Rule::Parse(text);
  if (!rule) {
    ADD_FAILURE() << rule.error().text;
    return {};
  }
  auto offer = rule->Apply(all);
  if (!offer) ADD_FAILURE() << offer.error().text;
  return offer ? *offer : Offer();
}

std::vector<std::string> Chosen(const char* text, const std::vector<Interface>& all = Usual()) {
  std::vector<std::string> out;
  for (const Candidate& one : Apply(text, all).candidates) out.push_back(one.Text());
  return out;
}

std::string ErrorOf(const char* text, const std::vector<Interface>& all = Usual()) {
  const auto rule = Rule::Parse(text);
  if (!rule) return rule.error().text;
  const auto offer = rule->Apply(all);
  return offer ? "" : offer.error().text;
}

TEST(Rule, NamesMayBeOfInterfacesThatReachNobody) {
  const auto named = [](const char* text) { return Rule::Parse(text)->CheckNames(Usual()).ok(); };
  EXPECT_TRUE(named("lo"));
  EXPECT_TRUE(named("^lo"));
  EXPECT_TRUE(named("nosuch7,lo"));
  EXPECT_FALSE(named("nosuch7"));
  EXPECT_THAT(ErrorOf("lo"), HasSubstr("leaves no interface of this host that can reach others"));
}

TEST(Rule, AnotherNameOfAnInterfaceIsTakenWhole) {
  auto all = Usual();
  all[1].other_names = {"enp129s0f0np0-onboard", "lan"};
  EXPECT_THAT(Chosen("enp129s0f0np0-onboard", all), ElementsAre("eth1 10.0.0.5", "eth1 fd00::5"));
  EXPECT_THAT(Chosen("=lan", all), ElementsAre("eth1 10.0.0.5", "eth1 fd00::5"));
  EXPECT_THAT(Chosen("^lan,^eth10,^eth1.100", all), ElementsAre("tun0 10.8.0.5"));
  EXPECT_THAT(ErrorOf("la", all), HasSubstr("is not an interface of this host"));
}

TEST(Rule, AutoTakesAllButLoopbackAndVirtualBridges) {
  EXPECT_THAT(Chosen("auto"), ElementsAre("eth1 10.0.0.5", "eth1 fd00::5", "eth10 10.1.0.5",
                                          "eth1.100 10.2.0.5", "tun0 10.8.0.5"));
}

TEST(Rule, ExclusionsAddToTheBuiltInOnes) {
  EXPECT_THAT(Chosen("^eth1,^tun0"), ElementsAre("eth10 10.1.0.5", "eth1.100 10.2.0.5"));
  EXPECT_THAT(Chosen("^eth"), ElementsAre("tun0 10.8.0.5"));
}

TEST(Rule, AWholeNameIsThatInterfaceAlone) {
  EXPECT_THAT(Chosen("eth1"), ElementsAre("eth1 10.0.0.5", "eth1 fd00::5"));
  EXPECT_THAT(Chosen("=eth10"), ElementsAre("eth10 10.1.0.5"));
}

TEST(Rule, APrefixDoesNotEndInsideANumber) {
  auto all = Usual();
  all.erase(all.begin() + 1);  // eth1: its VLAN begins with the name, eth10 does not
  EXPECT_THAT(Chosen("eth1", all), ElementsAre("eth1.100 10.2.0.5"));
  EXPECT_THAT(Chosen("eth", all), ElementsAre("eth10 10.1.0.5", "eth1.100 10.2.0.5"));
  EXPECT_THAT(ErrorOf("=eth1", all), HasSubstr("'=eth1' is not an interface of this host"));
}

TEST(Rule, ANameOfOurChoiceMayBeAVirtualBridge) {
  EXPECT_THAT(Chosen("docker0"), ElementsAre("docker0 172.17.0.1"));
}

TEST(Rule, AListMayChooseAndExclude) {
  EXPECT_THAT(Chosen("eth, ^eth10"), ElementsAre("eth1 10.0.0.5", "eth1 fd00::5", "eth1.100 10.2.0.5"));
}

TEST(Rule, NetworksAndAddressesChooseByAddress) {
  EXPECT_THAT(Chosen("10.0.0.0/14"), ElementsAre("eth1 10.0.0.5", "eth10 10.1.0.5", "eth1.100 10.2.0.5"));
  EXPECT_THAT(Chosen("fd00::5"), ElementsAre("eth1 fd00::5"));
  EXPECT_THAT(ErrorOf("^10.0.0.0/8,^fd00::/8"), HasSubstr("excluded by"));
}

TEST(Rule, EveryGlobalAddressIsACandidate) {
  const std::vector<Interface> all = {CardOf(2, "eth0",
                                             {AddressAt("203.0.113.10", 24), AddressAt("10.5.0.1", 24),
                                              AddressAt("fd00::5", 64), AddressAt("169.254.1.5", 16)})};
  EXPECT_THAT(Chosen("auto", all), ElementsAre("eth0 203.0.113.10", "eth0 10.5.0.1", "eth0 fd00::5"));
  EXPECT_THAT(Chosen("eth0", all), ElementsAre("eth0 203.0.113.10", "eth0 10.5.0.1", "eth0 fd00::5"));
  const Offer offer = Apply("^203.0.113.0/24, ^fd00::5", all);
  ASSERT_EQ(offer.candidates.size(), 1u);
  EXPECT_EQ(offer.candidates[0].Text(), "eth0 10.5.0.1");
  EXPECT_FALSE(offer.candidates[0].first_address);
  EXPECT_THAT(Chosen("eth0, ^203.0.113.10", all), ElementsAre("eth0 10.5.0.1", "eth0 fd00::5"));
}

TEST(Rule, OfVeryManyAddressesTheFirstAreCandidates) {
  std::vector<Address> addresses;
  for (int i = 1; i <= 40; ++i) addresses.push_back(AddressAt(("10.5.0." + std::to_string(i)).c_str(), 32));
  EXPECT_THAT(Chosen("auto", {CardOf(2, "eth0", addresses)}),
              ElementsAre("eth0 10.5.0.1", "eth0 10.5.0.2", "eth0 10.5.0.3", "eth0 10.5.0.4"));
}

TEST(Rule, OneListServesHostsWithOtherNames) {
  const Offer offer = Apply("ens3,eth10");
  EXPECT_EQ(offer.candidates.size(), 1u);
  EXPECT_THAT(offer.unmatched, ElementsAre("ens3"));
}

TEST(Rule, ALeadingExclusionNeverTurnsIntoAChoice) {
  EXPECT_THAT(ErrorOf("^docker0,lo"), AllOf(HasSubstr("'lo'"), HasSubstr("'^lo'")));
}

TEST(Rule, AnUnknownNameListsWhatThereIsAndTheNearest) {
  EXPECT_THAT(ErrorOf("etg1"),
              AllOf(HasSubstr("'etg1' is not an interface of this host, which has lo (127.0.0.1/8"),
                    HasSubstr("eth10 (10.1.0.5/24)"), HasSubstr("did you mean 'eth1'?")));
}

TEST(Rule, AnAddressOfAnotherHostIsMetWithItsNetwork) {
  EXPECT_THAT(ErrorOf("10.0.0.7"), HasSubstr("'10.0.0.7/24' is its network, which this host is in"));
  EXPECT_THAT(ErrorOf("10.9.9.9"), HasSubstr("name a network such as"));
  EXPECT_THAT(ErrorOf("10.9.0.0/16"), Not(HasSubstr("an address is of one host")));
}

TEST(Rule, WhatIsLeftOutSaysWhy) {
  auto all = Usual();
  all[1].carrier = false;
  all[2].up = all[2].carrier = false;
  all[3].addresses = {AddressAt("fe80::7", 64)};
  all[5].addresses.clear();
  EXPECT_THAT(ErrorOf("auto", all),
              AllOf(HasSubstr("lo is loopback"), HasSubstr("eth1 has no carrier"), HasSubstr("eth10 is down"),
                    HasSubstr("eth1.100 has only link-local IPv6"), HasSubstr("docker0 is a virtual bridge"),
                    HasSubstr("tun0 has no address")));
  EXPECT_THAT(ErrorOf("eth10", all), HasSubstr("eth10 is down"));
}

TEST(Rule, ExclusionsThatLeaveNothingAreNamed) {
  EXPECT_THAT(ErrorOf("^eth,^tun"),
              AllOf(HasSubstr("eth1 is excluded by '^eth'"), HasSubstr("tun0 is excluded by '^tun'")));
}

TEST(Rule, AnAddressThatRoutersKnowMayLiveOnLoopback) {
  const auto offer = Apply(
      "auto", {CardOf(1, "lo", {AddressAt("127.0.0.1", 8), AddressAt("10.99.0.1", 32)}, Kind::kLoopback)});
  ASSERT_EQ(offer.candidates.size(), 1u);
  EXPECT_EQ(offer.candidates[0].Text(), "lo 10.99.0.1");
  EXPECT_FALSE(offer.candidates[0].first_address);  // the name alone would select 127.0.0.1
}

TEST(Rule, SomeLinkLocalIsBetterThanNothing) {
  EXPECT_THAT(Chosen("auto", {CardOf(2, "eth0", {AddressAt("169.254.1.5", 16)})}),
              ElementsAre("eth0 169.254.1.5"));
  EXPECT_THAT(Chosen("auto", {CardOf(2, "eth0", {AddressAt("169.254.1.5", 16), AddressAt("10.0.0.5", 24)})}),
              ElementsAre("eth0 10.0.0.5"));
}

TEST(Rule, MistakesAreNamed) {
  for (const char* text : {"", ",", "eth0,", "^", "=", "=10.0.0.1", "10.0.0.0/33", "10.0.0/8", "fe80::1%eth0",
                           "eth*", "auto,eth0", "a-name-of-sixteen", "10.0.0.0/", "fd00::/129"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("'")) << text;
  }
}

}  // namespace
}  // namespace dtrun::network
