#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launchers/schedulers/reading.h"

namespace dtrun::schedulers {
namespace {

using ::testing::ElementsAre;

TEST(ResourceConfig, IsReadAsSageMakerWritesIt) {
  const auto config = ReadResourceConfig(R"({
    "current_group_name": "homogeneousCluster",
    "current_host": "algo-1",
    "current_instance_type": "ml.p4d.24xlarge",
    "hosts": ["algo-2", "algo-1"],
    "instance_groups": [{"hosts": ["algo-1"], "instance_group_name": "g", "count": 1.5e3, "x": null}],
    "network_interface_name": "eth0"
  })");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->current_host, "algo-1");
  EXPECT_THAT(config->hosts, ElementsAre("algo-2", "algo-1"));
}

TEST(ResourceConfig, OfOtherFormIsNone) {
  for (const char* text : {"", "[]", "{", R"({"hosts": ["a"]})", R"({"current_host": "a"})",
                           R"({"current_host": "a", "hosts": "a"})", R"({"current_host": 1, "hosts": ["a"]})",
                           R"({"current_host": "a", "hosts": ["a", 1]})"}) {
    EXPECT_FALSE(ReadResourceConfig(text)) << text;
  }
  EXPECT_FALSE(ReadResourceConfig(R"({"a":)" + std::string(100'000, '[')));
}

TEST(HostList, IsAListOfStrings) {
  EXPECT_THAT(*ReadHostList(R"([ "algo\u002d1" , "b" ])"), ElementsAre("algo-1", "b"));
  for (const char* text : {"", "algo-1", R"(["a",)", R"(["a"] "b")", R"({"a": "b"})", "[1]"})
    EXPECT_FALSE(ReadHostList(text)) << text;
}

}  // namespace
}  // namespace dtrun::schedulers
