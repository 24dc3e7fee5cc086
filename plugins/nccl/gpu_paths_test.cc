#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peer_access.h"

namespace dtrun::nccl_plugin {
namespace {

using State = PeerPair::State;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

PeerReport TwoGpus(PeerPair there, PeerPair back) {
  there.to = back.from = 1;
  return {.devices = {"0000:01:00.0", "0000:02:00.0"}, .pairs = {there, back}};
}
const PeerReport kFine = TwoGpus({.bytes_per_second = 20e9}, {.bytes_per_second = 10e9});
const PeerReport kBroken = TwoGpus({.state = State::kBroken, .reason = "the copy arrives corrupt"}, {});
const PeerReport kRefused = TwoGpus({.state = State::kRefused, .reason = "the driver says that it cannot"},
                                    {.state = State::kRefused, .reason = "the driver says that it cannot"});

GpuPathInputs Inputs(const PeerReport& report) {
  GpuPathInputs inputs;
  inputs.local_ranks = 2;
  inputs.inherited = [](const char*) { return std::nullopt; };
  inputs.ask = [&report] { return report; };
  inputs.shm_free_bytes = std::uint64_t{1} << 30;
  return inputs;
}

std::string RefusalOf(const GpuPathInputs& inputs) {
  try {
    ChooseGpuPaths(inputs);
  } catch (const sdk::Failure& failure) {
    return failure.what();
  }
  return "none";
}

TEST(GpuPaths, KeepPeersThatAreProven) {
  const GpuPaths paths = ChooseGpuPaths(Inputs(kFine));
  EXPECT_THAT(paths.variables, ElementsAre(Pair("DTRUN_P2P", "on")));
  EXPECT_THAT(paths.facts,
              ElementsAre(Pair("peer 0", "0000:01:00.0"), Pair("peer 1", "0000:02:00.0"),
                          Pair("peer 0>1", "proven: 20 GB/s"), Pair("peer 1>0", "proven: 10 GB/s"),
                          Pair("p2p", "on: 2 of 2 directions proven, the slowest at 10 GB/s")));
}

TEST(GpuPaths, GoRoundPeersThatAreBroken) {
  const GpuPaths paths = ChooseGpuPaths(Inputs(kBroken));
  EXPECT_THAT(paths.variables, ElementsAre(Pair("NCCL_P2P_DISABLE", "1"), Pair("DTRUN_P2P", "off")));
  EXPECT_THAT(paths.facts, Contains(Pair("peer 0>1", "broken: the copy arrives corrupt")));
  EXPECT_THAT(paths.facts, Contains(Pair("p2p",
                                         "off: GPU 1 (0000:02:00.0) cannot read GPU 0 (0000:01:00.0): "
                                         "the copy arrives corrupt")));
}

TEST(GpuPaths, GoRoundPeersThatTheDriverRefuses) {
  EXPECT_THAT(ChooseGpuPaths(Inputs(kRefused)).variables,
              ElementsAre(Pair("NCCL_P2P_DISABLE", "1"), Pair("DTRUN_P2P", "off")));
}

TEST(GpuPaths, GoRoundPeersThatWorkOneWayOnly) {
  const PeerReport report = TwoGpus({.state = State::kRefused, .reason = "the driver says that it cannot"},
                                    {.bytes_per_second = 10e9});
  const GpuPaths paths = ChooseGpuPaths(Inputs(report));
  EXPECT_THAT(paths.variables, ElementsAre(Pair("NCCL_P2P_DISABLE", "1"), Pair("DTRUN_P2P", "off")));
  EXPECT_THAT(paths.facts.back().second, HasSubstr("though the other way it can"));
}

TEST(GpuPaths, LeaveNcclAloneWhenTheTrialToldNothing) {
  const PeerReport report{.devices = {"0000:01:00.0", "0000:02:00.0"}, .trouble = "no child process"};
  const GpuPaths paths = ChooseGpuPaths(Inputs(report));
  EXPECT_THAT(paths.variables, IsEmpty());
  EXPECT_THAT(paths.facts, Contains(Pair("p2p", "on: not tried: no child process")));
}

TEST(GpuPaths, SayNothingWithoutGpus) {
  const PeerReport none;
  EXPECT_THAT(ChooseGpuPaths(Inputs(none)).facts, IsEmpty());
}

TEST(GpuPaths, TryNothingForOneRank) {
  GpuPathInputs inputs = Inputs(kBroken);
  inputs.local_ranks = 1;
  EXPECT_THAT(ChooseGpuPaths(inputs).facts, IsEmpty());
}

TEST(GpuPaths, RefuseWhatIsAskedForAndCannotBe) {
  GpuPathInputs inputs = Inputs(kBroken);
  inputs.p2p = Switch::kOn;
  EXPECT_EQ(
      RefusalOf(inputs),
      "backend.options.p2p is \"on\", but GPU 1 (0000:02:00.0) cannot read GPU 0 (0000:01:00.0): the copy "
      "arrives corrupt; \"auto\" goes round it, \"off\" does without");
}

TEST(GpuPaths, LeaveTheUsersOwnVariable) {
  GpuPathInputs inputs = Inputs(kBroken);
  inputs.inherited = [](const char* name) {
    return std::string(name) == "NCCL_P2P_DISABLE" ? std::optional<std::string>("0") : std::nullopt;
  };
  const GpuPaths paths = ChooseGpuPaths(inputs);
  EXPECT_THAT(paths.variables, ElementsAre(Pair("DTRUN_P2P", "on")));
  EXPECT_THAT(paths.facts.at(0).second, HasSubstr("NCCL_P2P_DISABLE=0 of your environment"));
}

TEST(GpuPaths, AvoidASmallShmWherePeersDoNotMeet) {
  GpuPathInputs inputs = Inputs(kBroken);
  inputs.shm_free_bytes = std::uint64_t{40} << 20;
  const GpuPaths paths = ChooseGpuPaths(inputs);
  EXPECT_THAT(paths.variables, Contains(Pair("NCCL_SHM_DISABLE", "1")));
  EXPECT_THAT(paths.facts.back().second, HasSubstr("/dev/shm has 40 MiB left for 2 ranks"));
  inputs.ask = [] { return kFine; };
  EXPECT_THAT(ChooseGpuPaths(inputs).variables, ElementsAre(Pair("DTRUN_P2P", "on")));
}

}  // namespace
}  // namespace dtrun::nccl_plugin
