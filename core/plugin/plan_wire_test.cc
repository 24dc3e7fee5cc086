#include "core/plugin/plan_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

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

LaunchPlan Carried(const LaunchPlan& sent) {
  LaunchPlan read;
  const std::string line = Encode(sent);
  EXPECT_EQ(line.find('\n'), line.npos);
  const auto more = DecodePlan(line, &read);
  EXPECT_TRUE(more && !*more);
  return read;
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
  const LaunchPlan read = Carried(sent);
  ASSERT_EQ(read.processes.size(), 1u);
  const PlannedProcess& process = read.processes[0];
  EXPECT_EQ(process.host, 1);
  EXPECT_EQ(process.rank, 2);
  EXPECT_EQ(process.local_rank, 0);
  EXPECT_EQ(process.rank_count, 3);
  EXPECT_THAT(process.argv, ElementsAre("a", EveryByte()));
  EXPECT_THAT(process.env, ElementsAre(Pair("X", EveryByte())));
  EXPECT_THAT(process.unset, ElementsAre("GONE"));
  EXPECT_EQ(process.cwd, "/w");
  EXPECT_THAT(read.notes, ElementsAre("note"));
}

TEST(PlanWire, TellsEachProcessByWhatItHasAlone) {
  LaunchPlan sent;
  constexpr int kRanks = 1000;
  for (int rank = 0; rank < kRanks; ++rank) {
    sent.processes.push_back({rank / 2, rank, rank % 2, 1, {"prog", "--same"},
                              {{"SAME", std::string(200, 'x')}, {"RANK", std::to_string(rank)}}, {}, "/w"});
  }
  sent.processes[7].argv = {"other"};
  sent.processes[8].unset = {"GONE"};
  sent.processes[9].cwd = "/elsewhere";
  sent.processes[10].env = {{"RANK", "10"}};  // without SAME
  sent.processes[11].env["MORE"] = "";
  sent.notes = {"note"};
  EXPECT_LT(Encode(sent).size(), 100u * kRanks);
  const LaunchPlan read = Carried(sent);
  ASSERT_EQ(read.processes.size(), sent.processes.size());
  for (std::size_t i = 0; i < sent.processes.size(); ++i) {
    const PlannedProcess &one = read.processes[i], &other = sent.processes[i];
    EXPECT_EQ(std::tie(one.host, one.rank, one.local_rank, one.argv, one.unset, one.cwd),
              std::tie(other.host, other.rank, other.local_rank, other.argv, other.unset, other.cwd))
        << i;
    EXPECT_EQ(one.env, other.env) << i;
  }
  EXPECT_THAT(read.notes, ElementsAre("note"));
}

TEST(PlanWire, CarriesAPlanInParts) {
  LaunchPlan first, last, read;
  first.processes.push_back({0, 0, 0, 1, {"a"}, {{"X", "0"}}, {}, "/w"});
  last.processes.push_back({0, 1, 1, 1, {"a"}, {{"X", "1"}}, {}, "/w"});
  const auto more = DecodePlan(Encode(first, true), &read);
  EXPECT_TRUE(more && *more);
  const auto end = DecodePlan(Encode(last), &read);
  EXPECT_TRUE(end && !*end);
  ASSERT_EQ(read.processes.size(), 2u);
  EXPECT_EQ(read.processes[1].env.at("X"), "1");
}

TEST(PlanWire, MakesAnErrorOfWhatIsNoPlan) {
  for (const char* line :
       {"", "{}", "[]", "{\"planned\": 3}", "{\"planned\": {\"processes\": [{}], \"notes\": []}}",
        "{\"planned\": {\"processes\": [{\"at\": [0]}], \"notes\": []}}"}) {
    LaunchPlan plan;
    const auto read = DecodePlan(line, &plan);
    ASSERT_FALSE(read) << line;
    EXPECT_THAT(read.error().text, HasSubstr("invalid answer")) << line;
  }
}

}  // namespace
}  // namespace dtrun::plugin::wire
