#include "core/verdict/waits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/stacks/doing.h"

namespace dtrun::verdict {
namespace {

using stacks::Stand;

RankDoing Added(const RankDoing& doing) {
  std::vector<RankDoing> ranks = {doing};
  AddCalls(&ranks);
  return ranks.front();
}

RankDoing At(Stand stand, const std::string& phrase, bool in_call) {
  RankDoing doing;
  doing.stand = stand;
  doing.phrase = phrase;
  doing.call = {.under_way = in_call, .group = "world", .number = in_call ? 7U : 6U};
  if (in_call) doing.call->name = "allreduce", doing.call->details = "(float32 x 8, sum)";
  return Added(doing);
}

TEST(CallOfAPlace, IsWhereAProgramThatIsNotPythonWaits) {
  const RankDoing waits = At(Stand::kUnknown, "in futex", true);
  EXPECT_EQ(waits.stand, Stand::kWaits);
  EXPECT_EQ(waits.Said(), "in allreduce #7 on 'world' (float32 x 8, sum)");
  const RankDoing elsewhere = At(Stand::kUnknown, "in futex", false);
  EXPECT_EQ(elsewhere.stand, Stand::kElsewhere);
  EXPECT_EQ(elsewhere.Said(), "in futex (no collective after #6 on 'world')");
}

TEST(CallOfAPlace, AddsItsNumberToAKnownPlace) {
  EXPECT_EQ(At(Stand::kWaits, "in allreduce at t.py:8", true).Said(),
            "in allreduce at t.py:8 (allreduce #7 on 'world')");
  EXPECT_EQ(At(Stand::kElsewhere, "in load at t.py:6", false).Said(),
            "in load at t.py:6 (no collective after #6 on 'world')");
}

TEST(CallOfAPlace, ANapWhileACallIsUnderWayIsAWait) {
  const auto seen = [](bool naps, bool in_call) {
    RankDoing doing;
    doing.stand = Stand::kElsewhere;
    doing.naps = naps;
    doing.phrase = "in time.sleep at t.py:9";
    doing.call = {.under_way = in_call,
                  .message = in_call,
                  .polled = true,
                  .group = "world",
                  .name = "recv from rank 0 with tag 5"};
    return Added(doing);
  };
  EXPECT_EQ(seen(true, true).stand, Stand::kWaits);
  EXPECT_EQ(seen(true, true).Said(), "in time.sleep at t.py:9 (recv from rank 0 with tag 5 on 'world')");
  EXPECT_EQ(seen(false, true).stand, Stand::kElsewhere);
  EXPECT_EQ(seen(true, false).stand, Stand::kElsewhere);
}

// A receive of a message that may come at any time, and other work.
TEST(CallOfAPlace, OfAProgramThatIsNotPythonIsNoWaitIfItNapsAndNeverAsks) {
  RankDoing doing;
  doing.stand = Stand::kMayWait;
  doing.naps = true;
  doing.spot = 7;
  doing.phrase = "in clock_nanosleep";
  doing.call = {.under_way = true, .message = true, .group = "world", .name = "recv from rank 0 with tag 9"};
  EXPECT_EQ(Added(doing).stand, Stand::kElsewhere);
  doing.call->polled = true;
  EXPECT_EQ(Added(doing).stand, Stand::kWaits);
}

TEST(CallOfAPlace, ARankThatComputesMayHaveACallUnderWay) {
  EXPECT_EQ(At(Stand::kUnknown, stacks::kRunning, true).stand, Stand::kUnknown);
  EXPECT_EQ(At(Stand::kElsewhere, "in load at t.py:6", true).Said(), "in load at t.py:6");
}

TEST(CallOfAPlace, ARankWithoutCallsStaysAsItWasSeen) {
  RankDoing doing;
  doing.phrase = "in futex";
  doing = Added(doing);
  EXPECT_EQ(doing.stand, Stand::kUnknown);
  EXPECT_EQ(doing.Said(), "in futex");
}

RankDoing Calls(int rank, const std::string& group, std::uint64_t number, const std::string& details) {
  RankDoing doing;
  doing.rank = rank;
  doing.stand = Stand::kWaits;
  doing.call = {
      .under_way = true, .group = group, .number = number, .name = "all_reduce", .details = details};
  doing.call->signature = "all_reduce " + details;
  return doing;
}

TEST(DifferingCalls, AreOfOneGroupAndNumber) {
  const std::string eight = "(float32 [8])", four = "(float32 [4])";
  EXPECT_EQ(WhoWaitsText({Calls(0, "dp", 4, eight), Calls(1, "dp", 4, four), Calls(2, "dp", 4, eight)}),
            "collective #4 on 'dp' is not the same on all ranks: rank 1 calls all_reduce (float32 [4]), "
            "ranks 0, 2 call all_reduce (float32 [8])");
  EXPECT_EQ(DifferingCallsText({Calls(0, "dp", 4, eight), Calls(1, "dp", 5, four), Calls(2, "tp", 4, four)}),
            "");
  EXPECT_EQ(DifferingCallsText({Calls(0, "dp", 4, eight), Calls(1, "dp", 4, eight)}), "");
}

RankDoing Waits(int rank, const std::string& phrase) {
  RankDoing doing;
  doing.rank = rank;
  doing.stand = Stand::kWaits;
  doing.phrase = phrase;
  return doing;
}

TEST(WhoWaits, NamesRanksThatHaveExitedWhereNoneOfTheOthersIsAtWork) {
  EXPECT_EQ(WhoWaitsText({Waits(0, "in init_process_group at t.py:2")}, {1}),
            "rank 0 waits for others, and rank 1 has exited");
  RankDoing works = Waits(2, "in load at t.py:6");
  works.stand = Stand::kElsewhere;
  EXPECT_EQ(WhoWaitsText({Waits(0, "in all_reduce at t.py:9"), works}, {1}), "rank 0 waits for rank 2");
  EXPECT_EQ(WhoWaitsText({works}, {1}), "");
}

TEST(WhoWaits, SaysThatAllReceive) {
  const std::vector<RankDoing> places = {Waits(0, "in recv at t.py:2"), Waits(1, "in recv at t.py:5")};
  EXPECT_EQ(WhoWaitsText(places),
            "all ranks wait in a receive: if that lasts, no rank has sent what they wait for");
  EXPECT_EQ(WhoWaitsText({Waits(0, "in recv at t.py:2"), Waits(1, "in send at t.py:5")}), "");
  EXPECT_EQ(WhoWaitsText({Waits(0, "in barrier at t.py:7"), Waits(1, "in recv at t.py:5")}),
            "all ranks wait, rank 1 in a receive: if that lasts, no rank has sent what it waits for");
}

}  // namespace
}  // namespace dtrun::verdict
