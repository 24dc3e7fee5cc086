#include "ways.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

WaysInputs Inputs(const PeerReport& report) {
  WaysInputs inputs;
  inputs.local_ranks = 2;
  inputs.inherited = [](const char*) { return std::nullopt; };
  inputs.ask = [&report] { return report; };
  inputs.shm_free_bytes = std::uint64_t{1} << 30;
  return inputs;
}

std::string RefusalOf(const WaysInputs& inputs) {
  try {
    ChooseWays(inputs);
  } catch (const sdk::Failure& failure) {
    return failure.what();
  }
  return "none";
}

TEST(Ways, KeepPeersThatAreProven) {
  const Ways ways = ChooseWays(Inputs(kFine));
  EXPECT_THAT(ways.variables, ElementsAre(Pair("DTRUN_P2P", "on")));
  EXPECT_THAT(ways.facts,
              ElementsAre(Pair("peer 0", "0000:01:00.0"), Pair("peer 1", "0000:02:00.0"),
                          Pair("peer 0>1", "proven: 20 GB/s"), Pair("peer 1>0", "proven: 10 GB/s"),
                          Pair("p2p", "on: 2 of 2 directions proven, the slowest at 10 GB/s")));
}

TEST(Ways, GoRoundPeersThatAreBroken) {
  const Ways ways = ChooseWays(Inputs(kBroken));
  EXPECT_THAT(ways.variables, ElementsAre(Pair("NCCL_P2P_DISABLE", "1"), Pair("DTRUN_P2P", "off")));
  EXPECT_THAT(ways.facts, Contains(Pair("peer 0>1", "broken: the copy arrives corrupt")));
  EXPECT_THAT(ways.facts, Contains(Pair("p2p",
                                        "off: GPU 1 (0000:02:00.0) cannot read GPU 0 (0000:01:00.0): "
                                        "the copy arrives corrupt")));
}

TEST(Ways, GoRoundPeersThatTheDriverRefuses) {
  EXPECT_THAT(ChooseWays(Inputs(kRefused)).variables,
              ElementsAre(Pair("NCCL_P2P_DISABLE", "1"), Pair("DTRUN_P2P", "off")));
}

TEST(Ways, GoRoundPeersThatWorkOneWayOnly) {
  const PeerReport report = TwoGpus({.state = State::kRefused, .reason = "the driver says that it cannot"},
                                    {.bytes_per_second = 10e9});
  const Ways ways = ChooseWays(Inputs(report));
  EXPECT_THAT(ways.variables, ElementsAre(Pair("NCCL_P2P_DISABLE", "1"), Pair("DTRUN_P2P", "off")));
  EXPECT_THAT(ways.facts.back().second, HasSubstr("though the other way it can"));
}

TEST(Ways, LeaveNcclAloneWhenTheTrialToldNothing) {
  const PeerReport report{.devices = {"0000:01:00.0", "0000:02:00.0"}, .trouble = "no child process"};
  const Ways ways = ChooseWays(Inputs(report));
  EXPECT_THAT(ways.variables, IsEmpty());
  EXPECT_THAT(ways.facts, Contains(Pair("p2p", "on: not tried: no child process")));
}

TEST(Ways, SayNothingWithoutGpus) {
  const PeerReport none;
  EXPECT_THAT(ChooseWays(Inputs(none)).facts, IsEmpty());
}

TEST(Ways, TryNothingForOneRank) {
  WaysInputs inputs = Inputs(kBroken);
  inputs.local_ranks = 1;
  EXPECT_THAT(ChooseWays(inputs).facts, IsEmpty());
}

TEST(Ways, RefuseWhatIsAskedForAndCannotBe) {
  WaysInputs inputs = Inputs(kBroken);
  inputs.p2p = Switch::kOn;
  EXPECT_EQ(
      RefusalOf(inputs),
      "backend.options.p2p is \"on\", but GPU 1 (0000:02:00.0) cannot read GPU 0 (0000:01:00.0): the copy "
      "arrives corrupt; \"auto\" goes round it, \"off\" does without");
}

TEST(Ways, LeaveTheUsersOwnVariable) {
  WaysInputs inputs = Inputs(kBroken);
  inputs.inherited = [](const char* name) {
    return std::string(name) == "NCCL_P2P_DISABLE" ? std::optional<std::string>("0") : std::nullopt;
  };
  const Ways ways = ChooseWays(inputs);
  EXPECT_THAT(ways.variables, ElementsAre(Pair("DTRUN_P2P", "on")));
  EXPECT_THAT(ways.facts.at(0).second, HasSubstr("NCCL_P2P_DISABLE=0 of your environment"));
}

TEST(Ways, AvoidASmallShmWherePeersDoNotMeet) {
  WaysInputs inputs = Inputs(kBroken);
  inputs.shm_free_bytes = std::uint64_t{40} << 20;
  const Ways ways = ChooseWays(inputs);
  EXPECT_THAT(ways.variables, Contains(Pair("NCCL_SHM_DISABLE", "1")));
  EXPECT_THAT(ways.facts.back().second, HasSubstr("/dev/shm has 40 MiB left for 2 ranks"));
  inputs.ask = [] { return kFine; };
  EXPECT_THAT(ChooseWays(inputs).variables, ElementsAre(Pair("DTRUN_P2P", "on")));
}

}  // namespace
}  // namespace dtrun::nccl_plugin
