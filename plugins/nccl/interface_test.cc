#include "interface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ThrowsMessage;

const std::vector<Interface> kHost = {{"lo", "127.0.0.1"}, {"eth1", "10.0.0.5"}, {"eth10", "10.1.0.5"}};

TEST(Interface, IsFoundByNameAndByAddress) {
  EXPECT_EQ(FindInterface(kHost, "eth1").address, "10.0.0.5");
  EXPECT_EQ(FindInterface(kHost, "10.1.0.5").name, "eth10");
  EXPECT_EQ(FindByAddress(kHost, "127.0.0.1")->name, "lo");
  EXPECT_FALSE(FindByAddress(kHost, "127.0.0.2"));
}

TEST(Interface, IsFoundByItsNetwork) {
  EXPECT_EQ(FindInterface(kHost, "10.1.0.0/16").name, "eth10");
  EXPECT_THAT([] { FindInterface(kHost, "10.2.0.0/16"); },
              ThrowsMessage<sdk::Failure>(HasSubstr("network.interface_on")));
}

TEST(Interface, IsNamedToNcclExactly) { EXPECT_EQ(ExactName(FindInterface(kHost, "eth1")), "=eth1"); }

TEST(Interface, ThatTheHostLacksIsRefusedWithThoseItHas) {
  EXPECT_THAT(
      [] { FindInterface(kHost, "ib0"); },
      ThrowsMessage<sdk::Failure>(AllOf(HasSubstr("'ib0'"), HasSubstr("lo 127.0.0.1, eth1 10.0.0.5"))));
}

TEST(Interface, ListHoldsLoopback) { EXPECT_EQ(FindInterface(ListInterfaces(), "127.0.0.1").name, "lo"); }

}  // namespace
}  // namespace dtrun::nccl_plugin
