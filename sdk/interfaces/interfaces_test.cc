#include "dtrun/interfaces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::interfaces {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ThrowsMessage;

constexpr bool kRunning = true;

Interface V4(const std::string& name, const std::string& address, bool running = kRunning) {
  return {name, address, name == "lo", running, false};
}
Interface V6(const std::string& name, const std::string& address) {
  return {name, address, name == "lo", kRunning, true};
}

const std::vector<Interface> kHost = {V4("lo", "127.0.0.1"),
                                      V4("docker0", "172.17.0.1"),
                                      V4("eth0", "10.0.0.5"),
                                      V4("eth1", "10.1.0.5", !kRunning),
                                      V6("lo", "::1"),
                                      V6("eth0", "fd00::5"),
                                      V6("eth0", "fe80::5%eth0"),
                                      V6("ib0", "fd01::5")};

std::string Choose(const std::optional<std::string>& wanted, int hosts,
                   const std::vector<std::string>& routes = {"eth0"}) {
  return interfaces::Choose(kHost, routes, wanted, hosts).Text();
}

TEST(Choose, TakesLoopbackWhenAllRanksShareOneHost) { EXPECT_EQ(Choose({}, 1), "lo 127.0.0.1"); }

TEST(Choose, TakesTheDefaultRouteBetweenHosts) { EXPECT_EQ(Choose({}, 2), "eth0 10.0.0.5"); }

TEST(Choose, TakesTheNextDefaultRouteWhenTheFirstIsDown) {
  EXPECT_EQ(Choose({}, 2, {"eth1", "ib0"}), "ib0 fd01::5");
}

TEST(Choose, TakesTheFirstThatRunsWithoutADefaultRoute) {
  EXPECT_EQ(Choose({}, 2, {}), "docker0 172.17.0.1");
}

TEST(Choose, FollowsTheUser) {
  EXPECT_EQ(Choose("docker0", 1), "docker0 172.17.0.1");
  EXPECT_EQ(Choose("ib0", 2), "ib0 fd01::5");
  EXPECT_EQ(Choose("10.0.0.5", 2), "eth0 10.0.0.5");
  EXPECT_EQ(Choose("fd00:0:0::5", 2), "eth0 fd00::5");
  EXPECT_EQ(Choose("fe80::5%eth0", 2), "eth0 fe80::5%eth0");
  EXPECT_EQ(Choose("10.0.0.0/16", 2), "eth0 10.0.0.5");
  EXPECT_EQ(Choose("fd01::/64", 2), "ib0 fd01::5");
}

TEST(Choose, SaysThatAnAddressFitsOneHost) {
  EXPECT_THAT([] { Choose("10.0.0.6", 2); },
              ThrowsMessage<sdk::Failure>(AllOf(HasSubstr("'10.0.0.6' is not an address of this host"),
                                                HasSubstr("to a network"), HasSubstr("interface_on"))));
  EXPECT_THAT([] { Choose("10.9.0.0/16", 2); },
              ThrowsMessage<sdk::Failure>(HasSubstr("is a network in which this host has no address")));
  EXPECT_THAT([] { Choose("10.1.0.0/16", 2); }, ThrowsMessage<sdk::Failure>(HasSubstr("is down")));
}

TEST(Choose, ListsWhatThereIsWhenTheNameIsUnknown) {
  EXPECT_THAT([] { Choose("eht0", 2); },
              ThrowsMessage<sdk::Failure>(AllOf(HasSubstr("'eht0'"), HasSubstr("eth0 10.0.0.5"),
                                                HasSubstr("eth1 10.1.0.5 (down)"),
                                                HasSubstr("did you mean 'eth0'?"))));
}

TEST(Choose, SuggestsNothingThatIsFarFromTheName) {
  EXPECT_THAT([] { Choose("infiniband7", 2); }, ThrowsMessage<sdk::Failure>(Not(HasSubstr("did you mean"))));
}

TEST(Choose, SaysThatAnInterfaceIsDown) {
  EXPECT_THAT([] { Choose("eth1", 2); },
              ThrowsMessage<sdk::Failure>(HasSubstr("'eth1' of this host is down")));
}

TEST(Choose, RefusesAHostWithoutANetworkForSeveralHosts) {
  EXPECT_THAT([] { interfaces::Choose({V4("lo", "127.0.0.1")}, {}, {}, 2); },
              ThrowsMessage<sdk::Failure>(
                  AllOf(HasSubstr("no running network interface"), HasSubstr("lo 127.0.0.1"))));
}

TEST(List, FindsTheLoopbackOfThisHost) {
  const Interface loopback = Choose(List(), DefaultRoutes(), {}, 1);
  EXPECT_TRUE(loopback.loopback);
  EXPECT_TRUE(loopback.running);
}

TEST(FindByAddress, LooksAtAddressesWithoutTheirScope) {
  EXPECT_EQ(FindByAddress(kHost, "127.0.0.1")->name, "lo");
  EXPECT_EQ(FindByAddress(kHost, "fe80::5")->name, "eth0");
  EXPECT_FALSE(FindByAddress(kHost, "127.0.0.2"));
}

}  // namespace
}  // namespace dtrun::interfaces
