#include "core/environments/dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "core/base/json.h"

namespace dtrun::environments {
namespace {

using ::testing::HasSubstr;

// `sizes`: number of ranks on each host.
RankTable Table(const std::vector<int>& sizes) {
  RankTable table;
  table.run_id = "demo";
  table.run_dir = "/runs/demo";
  table.master_port = "29500";
  int rank = 0;
  for (const int size : sizes) {
    const std::string number = std::to_string(table.hosts.size());
    table.hosts.push_back({"node" + number, "10.0.0." + number, rank, size});
    rank += size;
  }
  for (int i = 0; i < rank; ++i) table.task_ports.push_back(std::to_string(5000 + i));
  table.master_address = table.hosts[0].address;
  return table;
}

// One dialect in the format of its golden file; "?" marks fallbacks.
std::string Show(const Dialect& dialect) {
  std::string out;
  const auto add = [&](const std::string& title, const RankTable& table, int rank) {
    const Contract contract = dialect.write(table, rank);
    out += "# " + title + ", rank " + std::to_string(rank) + "\n";
    for (const auto& [name, value] : contract.set) out += name + "=" + value + "\n";
    for (const auto& [name, value] : contract.fallback) out += "?" + name + "=" + value + "\n";
  };
  for (const int rank : {0, 1}) add("1 host x 2", Table({2}), rank);
  for (const int rank : {0, 3}) add("3 hosts x 2", Table({2, 2, 2}), rank);
  return out;
}

class EveryDialect : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryDialect, WritesItsGoldenFile) {
  const std::string path = std::string(DTRUN_GOLDEN) + "/" + GetParam() + ".golden";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  const std::string golden(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(Show(**FindDialect(GetParam())), golden);
}

TEST_P(EveryDialect, WritesAsManyVariablesForEachRankOfAnUnevenJob) {
  const RankTable table = Table({1, 3, 2});
  const Dialect& dialect = **FindDialect(GetParam());
  const std::size_t expected = dialect.write(table, 0).set.size();
  for (int rank = 0; rank < table.world_size(); ++rank) {
    EXPECT_EQ(dialect.write(table, rank).set.size(), expected) << rank;
  }
}

TEST(Accelerate, IsToldOfCpusWhereNoGpuIsVisible) {
  RankTable table = Table({1, 1});
  const Dialect& accelerate = **FindDialect("accelerate");
  EXPECT_FALSE(accelerate.write(table, 1).fallback.contains("ACCELERATE_USE_CPU"));
  table.hosts[1].sees_gpus = false;
  EXPECT_EQ(accelerate.write(table, 1).fallback.at("ACCELERATE_USE_CPU"), "true");
  EXPECT_FALSE(accelerate.write(table, 0).fallback.contains("ACCELERATE_USE_CPU"));
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Dialect& dialect : Dialects()) names.emplace_back(dialect.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, EveryDialect, ::testing::ValuesIn(Names()), [](const auto& dialect) {
  std::string name = dialect.param;
  std::erase(name, '-');
  return name;
});

TEST(Horovod, CrossNumbersCountOnlyHostsWithThatLocalRank) {
  const Contract contract = WriteHorovod(Table({1, 3, 2}), 5);  // local rank 1 of the last host
  EXPECT_EQ(contract.set.at("HOROVOD_LOCAL_RANK"), "1");
  EXPECT_EQ(contract.set.at("HOROVOD_CROSS_RANK"), "1");
  EXPECT_EQ(contract.set.at("HOROVOD_CROSS_SIZE"), "2");
}

TEST(Horovod, NamesTheRendezvousOnlyWhereOneIsServed) {
  RankTable table = Table({2});
  EXPECT_FALSE(WriteHorovod(table, 0).set.contains("HOROVOD_GLOO_RENDEZVOUS_ADDR"));
  table.rendezvous_address = "10.0.0.9";
  table.rendezvous_port = "8080";
  const Contract contract = WriteHorovod(table, 0);
  EXPECT_EQ(contract.set.at("HOROVOD_GLOO_RENDEZVOUS_ADDR"), "10.0.0.9");
  EXPECT_EQ(contract.set.at("HOROVOD_GLOO_RENDEZVOUS_PORT"), "8080");
  EXPECT_EQ(contract.set.at("HOROVOD_CONTROLLER"), "gloo");
}

TEST(Slurm, AnUnevenJobIsCompressedAndHasNoOneSize) {
  const Contract contract = WriteSlurm(Table({3, 3, 1}), 4);
  EXPECT_EQ(contract.set.at("SLURM_TASKS_PER_NODE"), "3(x2),1");
  EXPECT_EQ(contract.set.at("SLURM_GTIDS"), "3,4,5");
  EXPECT_FALSE(contract.set.contains("SLURM_NTASKS_PER_NODE"));
}

TEST(TfConfig, EachRoleCountsItsOwnTasksAndTheEvaluatorStandsOutside) {
  RankTable table = Table({3, 2});
  table.roles = *AssignRoles({{"chief", "1"}, {"worker", "2"}, {"ps", "1"}, {"evaluator", "1"}}, 5);
  const auto worker = ParseJson(WriteTfConfig(table, 2).set.at("TF_CONFIG"));
  EXPECT_EQ(worker["task"], (Json{{"type", "worker"}, {"index", 1}}));
  EXPECT_EQ(worker["cluster"], (Json{{"chief", {"10.0.0.0:5000"}},
                                     {"worker", {"10.0.0.0:5001", "10.0.0.0:5002"}},
                                     {"ps", {"10.0.0.1:5003"}}}));
  const auto evaluator = ParseJson(WriteTfConfig(table, 4).set.at("TF_CONFIG"));
  EXPECT_EQ(evaluator["task"], (Json{{"type", "evaluator"}, {"index", 0}}));
  EXPECT_EQ(evaluator["cluster"], worker["cluster"]);
}

TEST(Torchrun, RolesHaveTheirOwnRanks) {
  RankTable table = Table({2, 2});
  table.roles = *AssignRoles({{"worker", "3"}, {"ps", "1"}}, 4);
  const Variables last = WriteTorchrun(table, 3).set;
  EXPECT_EQ(last.at("ROLE_NAME"), "ps");
  EXPECT_EQ(last.at("ROLE_RANK"), "0");
  EXPECT_EQ(last.at("ROLE_WORLD_SIZE"), "1");
  EXPECT_EQ(WriteTorchrun(table, 2).set.at("ROLE_RANK"), "2");
}

TEST(AzureMl, BracketsAnIpv6Master) {
  RankTable table = Table({1, 1});
  table.master_address = "fe80::1";
  EXPECT_EQ(WriteAzureMl(table, 0).set.at("AZ_BATCH_MASTER_NODE"), "[fe80::1]:29500");
}

TEST(AzureMl, HasThePortsOfItsRecipe) {
  EXPECT_EQ(AzureMlPort(1), 54965);
  EXPECT_EQ(AzureMlPort(2), 6105);
}

TEST(FindDialect, SuggestsTheNearest) {
  const auto found = FindDialect("horovd");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().text, "no dialect 'horovd'; did you mean 'horovod'?");
  EXPECT_THAT(FindDialect("x").error().text, HasSubstr("there are accelerate, azureml"));
}

}  // namespace
}  // namespace dtrun::environments
