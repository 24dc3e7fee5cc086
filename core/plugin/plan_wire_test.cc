#include "core/plugin/plan_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::plugin::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string EveryByte() {
  std::string bytes;
  for (int byte = 1; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

TEST(PlanWire, CarriesAJobWhateverBytesItHas) {
  PlanRequest sent;
  sent.options = "{}";
  sent.job.name = "demo";
  sent.job.argv = {"prog", EveryByte(), ""};
  sent.job.hosts = {{"node0", 0, 2, 8}, {"node1", 2, 1, 4}};
  sent.job.world_size = 3;
  sent.job.inherited = {{"A", "1"}, {EveryByte(), EveryByte()}};
  const std::string line = Encode(sent);
  EXPECT_EQ(line.find('\n'), line.npos);
  const auto read = DecodePlanRequest(line);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->job.argv, sent.job.argv);
  EXPECT_EQ(read->job.inherited, sent.job.inherited);
  EXPECT_EQ(read->job.world_size, 3);
  ASSERT_EQ(read->job.hosts.size(), 2u);
  EXPECT_EQ(read->job.hosts[1].name, "node1");
  EXPECT_EQ(read->job.hosts[1].first_rank, 2);
  EXPECT_EQ(read->job.hosts[1].cores, 4);
}

TEST(PlanWire, CarriesAPlan) {
  LaunchPlan sent;
  sent.processes.push_back({1, 2, 0, 3, {"a", EveryByte()}, {{"X", EveryByte()}}, {"GONE"}, "/w"});
  sent.notes = {"note"};
  const auto read = DecodePlan(Encode(sent));
  ASSERT_TRUE(read) << read.error().text;
  ASSERT_EQ(read->processes.size(), 1u);
  const PlannedProcess& process = read->processes[0];
  EXPECT_EQ(process.host, 1);
  EXPECT_EQ(process.rank, 2);
  EXPECT_EQ(process.local_rank, 0);
  EXPECT_EQ(process.rank_count, 3);
  EXPECT_THAT(process.argv, ElementsAre("a", EveryByte()));
  EXPECT_THAT(process.env, ElementsAre(Pair("X", EveryByte())));
  EXPECT_THAT(process.unset, ElementsAre("GONE"));
  EXPECT_EQ(process.cwd, "/w");
  EXPECT_THAT(read->notes, ElementsAre("note"));
}

TEST(PlanWire, MakesAnErrorOfWhatIsNoPlan) {
  for (const char* line :
       {"", "{}", "[]", "{\"planned\": 3}", "{\"planned\": {\"processes\": [{}], \"notes\": []}}",
        "{\"planned\": {\"processes\": [{\"at\": [0]}], \"notes\": []}}"}) {
    const auto read = DecodePlan(line);
    ASSERT_FALSE(read) << line;
    EXPECT_THAT(read.error().text, HasSubstr("invalid answer")) << line;
  }
}

}  // namespace
}  // namespace dtrun::plugin::wire
