#include "core/binding/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::binding {
namespace {

using ::testing::HasSubstr;

TEST(TopologyText, NamesSocketNodeAndTheThreadsOfEachCore) {
  const Topology topology{{{0, 0, {0, 4}}, {0, 0, {1, 5}}, {1, 1, {2, 6}}, {1, 1, {3}}}};
  EXPECT_EQ(ToText(topology), "0.0=0+4,1+5;1.1=2+6,3");
}

TEST(TopologyText, IsReadBackAsItWas) {
  for (const char* text :
       {"0.0=0", "0.0=0+4,1+5;1.1=2+6,3+7", "3.1=1023", "0.0=5;0.1=6;0.0=7", "0.0=0,1@3"}) {
    const auto topology = ParseTopology(text);
    ASSERT_TRUE(topology) << text;
    EXPECT_EQ(ToText(*topology), text);
  }
}

TEST(TopologyText, CountsTheThreads) {
  EXPECT_EQ(ParseTopology("0.0=0+4,1+5;1.1=2+6,3")->processor_count(), 7);
}

TEST(TopologyText, HasAQuotaThatLimitsItsCores) {
  EXPECT_EQ(ParseTopology("0.0=0,1,2@2")->core_count(), 2);
  EXPECT_EQ(ParseTopology("0.0=0,1,2@7")->core_count(), 3);
  EXPECT_EQ(ParseTopology("0.0=0,1,2")->core_count(), 3);
}

TEST(TopologyText, RefusesWhatIsNoMachine) {
  for (const char* text :
       {"", "0=1", "0.0", "0.0=", "0.0=1,", "0.0=1;", "0.0=1+", "0.0=x", "-1.0=1", "0.0=2+1", "0.0=1,1",
        "0.0=1;1.0=1", "0.0=1 ", "0.0=99999999999", "0.0=1@", "0.0=1@0", "0.0=1@2@2"}) {
    const auto topology = ParseTopology(text);
    ASSERT_FALSE(topology) << text;
    EXPECT_THAT(topology.error().text, HasSubstr("'" + std::string(text) + "'"));
  }
}

}  // namespace
}  // namespace dtrun::binding
