#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hosts/platforms.h"

namespace dtrun::hosts {
namespace {

using ::testing::HasSubstr;
using Hosts = std::vector<HostSlots>;

constexpr char kSpec[] =
    R"({"cluster": {"workerpool0": ["chief-0:2222"], "workerpool1": ["w-0:2222", "w-1:2223"]},
 "task": {"type": "workerpool1", "index": 1, "trial": "t"}, "environment": "cloud"})";

std::string VertexError(const std::string& spec, Environment more = {}) {
  more["CLUSTER_SPEC"] = spec;
  const auto allocation = ReadVertex(more);
  return allocation.ok() ? "no error" : allocation.error().text;
}

TEST(Vertex, PoolsInOrderAreTheHosts) {
  const auto allocation = ReadVertex({{"CLUSTER_SPEC", kSpec}, {"RANK", "2"}, {"WORLD_SIZE", "3"}});
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->hosts, (Hosts{{"chief-0", {}}, {"w-0", {}}, {"w-1", {}}}));
  EXPECT_EQ(allocation->own_index, 2);
  EXPECT_EQ(allocation->root_address, "chief-0");
  EXPECT_EQ(allocation->rank_port, 2222);
}

TEST(Vertex, AHostMayBeAnIpv6Address) {
  const auto allocation = ReadVertex({{"CLUSTER_SPEC", R"({"cluster": {"workerpool0": ["[fd00::2]:2222"]},
                                       "task": {"type": "workerpool0", "index": 0}})"}});
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->root_address, "fd00::2");
  EXPECT_THAT(VertexError(R"({"cluster": {"workerpool0": ["fd00::2"]},
                              "task": {"type": "workerpool0", "index": 0}})"),
              HasSubstr("is not \"host:port\""));
}

TEST(Vertex, HelpersAreNoTrainingHosts) {
  const auto spec = [](const std::string& type) {
    return R"({"cluster": {"workerpool0": ["c:1"], "workerpool1": ["w:1"], "workerpool2": ["r-0:1", "r-1:1"],
      "workerpool3": ["e:1"]}, "task": {"type": ")" +
           type + R"(", "index": 0}})";
  };
  for (const char* world_size : {"2", "5"}) {
    const auto trains = ReadVertex({{"CLUSTER_SPEC", spec("workerpool1")}, {"WORLD_SIZE", world_size}});
    ASSERT_TRUE(trains.ok()) << trains.error().text;
    EXPECT_EQ(trains->hosts, (Hosts{{"c", {}}, {"w", {}}}));
    EXPECT_EQ(trains->own_index, 1);
  }
  for (const char* pool : {"workerpool2", "workerpool3"}) {
    EXPECT_THAT(VertexError(spec(pool)), HasSubstr(std::string("this host is ") + pool + " 0, and only"));
  }
}

TEST(Vertex, ContradictionsNameBoth) {
  EXPECT_THAT(
      VertexError(kSpec, {{"RANK", "1"}, {"WORLD_SIZE", "6"}}),
      HasSubstr("RANK says 1, but CLUSTER_SPEC says host 2 of 3; WORLD_SIZE says 6, but CLUSTER_SPEC"));
}

TEST(Vertex, MalformedSpecsAreRefused) {
  EXPECT_THAT(VertexError(""), HasSubstr("CLUSTER_SPEC is unset"));
  EXPECT_THAT(VertexError("{"), HasSubstr("CLUSTER_SPEC is not JSON"));
  for (const char* spec : {"[]", "3", "{}", R"({"cluster": [], "task": {}})", R"({"task": 3})",
                           R"({"cluster": {}, "task": {"type": 0, "index": 0}})",
                           R"({"cluster": {}, "task": {"type": "workerpool0", "index": -1}})"}) {
    EXPECT_THAT(VertexError(spec), HasSubstr("CLUSTER_SPEC is not of the form")) << spec;
  }
  EXPECT_THAT(
      VertexError(R"({"cluster": {"workerpool0": ["a:1"]}, "task": {"type": "workerpool0", "index": 1}})"),
      HasSubstr("its cluster has no task workerpool0 1"));
  EXPECT_THAT(VertexError(R"({"cluster": {"workerpool0": 3}, "task": {"type": "workerpool0", "index": 0}})"),
              HasSubstr("workerpool0 is not a list"));
  EXPECT_THAT(
      VertexError(
          R"({"cluster": {"workerpool0": ["a:1", "a:2"]}, "task": {"type": "workerpool0", "index": 0}})"),
      HasSubstr("CLUSTER_SPEC names host 'a' twice"));
  for (const char* member : {R"("a")", R"("a:")", R"("a:0")", R"("a:70000")", R"("a b:1")", "3"}) {
    EXPECT_THAT(VertexError(std::string(R"({"cluster": {"workerpool0": [)") + member +
                            R"(]}, "task": {"type": "workerpool0", "index": 0}})"),
                HasSubstr("in workerpool0 is not \"host:port\""))
        << member;
  }
}

}  // namespace
}  // namespace dtrun::hosts
