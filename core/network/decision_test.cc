#include "core/network/decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/network/testing.h"

namespace dtrun::network {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Decision, SaysWhatIsUsedAndWhy) {
  const Decision decision = TwoNetworks(true);
  EXPECT_EQ(Summary(decision),
            "eth0 on all 2 hosts (10.5.0.1), 10.0 Gbit/s, 20 us round trip; tested in 80.0 ms");
  EXPECT_EQ(
      OthersText(decision),
      "eth1 10.6.0.1: connected, 100 Mbit/s, 90 us round trip; docker0 is a virtual bridge of this host");
  EXPECT_THAT(Table(decision), AllOf(HasSubstr("node1  eth0       virtual  10.5.0.1/24    chosen"),
                                     HasSubstr("left out   is a virtual bridge of this host")));
  EXPECT_THAT(Table(TwoNetworks(false)), HasSubstr("not connected  node2: no answer"));
  EXPECT_THAT(ToJson(decision), AllOf(HasSubstr("\"interface\": \"eth0\""), HasSubstr("\"chosen\": true"),
                                      HasSubstr("\"connectivity\": 80.0"), HasSubstr("\"proof\": 80.0")));
}

}  // namespace
}  // namespace dtrun::network
