#include "core/verdict/awaiting.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/verdict/waits.h"

namespace dtrun::verdict {
namespace {

using stacks::Stand;

// A member of the communicator with the id `group`, which has made `started` collectives there.
contract::Membership In(std::uint64_t group, int rank, std::uint64_t started = 0) {
  return {group, rank, started};
}

RankDoing Elsewhere(int rank, std::vector<contract::Membership> groups) {
  RankDoing doing;
  doing.rank = rank;
  doing.stand = Stand::kElsewhere;
  doing.phrase = "in time.sleep at t.py:6";
  doing.groups = std::move(groups);
  return doing;
}

RankDoing InCall(int rank, std::uint64_t group, std::uint64_t number,
                 std::vector<contract::Membership> groups) {
  RankDoing doing = Elsewhere(rank, std::move(groups));
  doing.stand = Stand::kWaits;
  doing.phrase = "in allreduce at t.py:8";
  doing.call = {.under_way = true, .group = std::to_string(group), .number = number, .name = "allreduce"};
  doing.awaited = contract::Awaited{.communicator = group, .number = number};
  return doing;
}

RankDoing Receives(int rank, std::vector<int> from, std::vector<contract::Membership> groups) {
  const std::uint64_t group = groups.front().communicator;
  RankDoing doing = InCall(rank, group, 0, std::move(groups));
  doing.phrase = "in recv at t.py:8";
  doing.call->message = true;
  doing.call->name = "recv from rank " + std::to_string(from.front()) + " with tag 5";
  doing.awaited->number = 0;
  doing.awaited->either = from.size() > 1;
  doing.awaited->ranks = std::move(from);
  return doing;
}

std::string Text(std::vector<RankDoing> ranks) {
  AddCalls(&ranks);
  return WhoWaitsText(ranks);
}

TEST(Awaiting, IsForMembersOfTheCommunicatorAlone) {
  EXPECT_EQ(Text({InCall(0, 7, 3, {In(7, 0, 3)}), Elsewhere(1, {In(7, 1, 2)}), Elsewhere(2, {In(8, 0, 2)})}),
            "rank 0 waits for rank 1");
  EXPECT_EQ(Text({InCall(0, 7, 3, {In(7, 0, 3)}), InCall(1, 7, 3, {In(7, 1, 3)}), Elsewhere(2, {In(8, 0)})}),
            "");
  EXPECT_EQ(Text({InCall(0, 7, 3, {In(7, 0, 3)}), Elsewhere(1, {In(7, 1, 2)}), InCall(2, 8, 1, {In(8, 0, 1)}),
                  Elsewhere(3, {In(8, 1, 0)})}),
            "rank 0 waits for rank 1; rank 2 waits for rank 3");
}

TEST(Awaiting, IsNotForARankThatHasCalledIt) {
  EXPECT_EQ(Text({InCall(0, 7, 3, {In(7, 0, 3)}), Elsewhere(1, {In(7, 1, 3)}), Elsewhere(2, {In(7, 2, 2)})}),
            "rank 0 waits for rank 2");
  EXPECT_EQ(Text({InCall(0, 7, 3, {In(7, 0, 3)}), Elsewhere(1, {In(7, 1, 3)})}), "");
}

TEST(Awaiting, GoesThroughRanksThatWaitElsewhere) {
  // 2 x 2: tensor-parallel 7 and 8, data-parallel 9 and 10; rank 3 is late for 8.
  EXPECT_EQ(Text({InCall(0, 9, 1, {In(7, 0, 1), In(9, 0, 1)}), InCall(1, 10, 1, {In(7, 1, 1), In(10, 0, 1)}),
                  InCall(2, 8, 1, {In(8, 0, 1), In(9, 1, 0)}), Elsewhere(3, {In(8, 1, 0), In(10, 1, 0)})}),
            "ranks 0-2 wait for rank 3");
}

TEST(Awaiting, OfAMessageIsForItsPeer) {
  const std::vector<RankDoing> stages = {Elsewhere(0, {In(7, 0)}), Receives(1, {0}, {In(7, 1)}),
                                         Elsewhere(2, {In(7, 2)})};
  EXPECT_EQ(Text(stages), "rank 1 waits for rank 0");
  EXPECT_EQ(Text({Elsewhere(0, {In(7, 0)}), Receives(1, {0}, {In(7, 1)}), Receives(2, {1}, {In(7, 2)})}),
            "ranks 1, 2 wait for rank 0");
}

TEST(Awaiting, OfOneOfSeveralNamesOneThatAloneIsLate) {
  const std::vector<contract::Membership> one = {In(7, 1)};
  EXPECT_EQ(Text({Elsewhere(0, {In(7, 0)}), Receives(1, {0, 2}, one), Receives(2, {1}, {In(7, 2)})}),
            "ranks 1, 2 wait for rank 0");
  EXPECT_EQ(Text({Elsewhere(0, {In(7, 0)}), Receives(1, {0, 2}, one), Elsewhere(2, {In(7, 2)})}), "");
}

TEST(Awaiting, OfAHandleThatMayBeThatOfAMessageNamesOneRankAlone) {
  RankDoing waits = Elsewhere(0, {});
  waits.stand = Stand::kWaits;
  waits.phrase = "in work.wait at t.py:9";
  RankDoing other = Elsewhere(1, {});
  other.stand = Stand::kWaits;
  other.phrase = "in barrier at t.py:12";
  EXPECT_EQ(Text({waits, other, Elsewhere(2, {})}), "ranks 0, 1 wait for rank 2");
  EXPECT_EQ(Text({waits, Elsewhere(1, {}), Elsewhere(2, {})}), "");
}

TEST(Awaiting, OfARankWithAThreadInACollectiveIsForTheOneThatItWaitsFor) {
  RankDoing sleeps = InCall(1, 8, 4, {In(7, 1, 2), In(8, 0, 4)});
  sleeps.stand = Stand::kElsewhere;
  EXPECT_EQ(Text({InCall(0, 7, 3, {In(7, 0, 3)}), sleeps, Elsewhere(2, {In(8, 1, 3)})}),
            "rank 0 waits for rank 2");
  EXPECT_EQ(Text({InCall(0, 7, 3, {In(7, 0, 3)}), sleeps}), "rank 0 waits for rank 1");
}

TEST(Awaiting, InACircleLasts) {
  EXPECT_EQ(
      Text({InCall(0, 7, 1, {In(7, 0, 1), In(8, 0, 0)}), InCall(1, 8, 1, {In(7, 1, 0), In(8, 1, 1)})}),
      "ranks 0, 1 wait for each other, in collectives of different communicators: if that lasts, none of "
      "them can complete; all ranks have to call those in the same order");
}

// Places in torch's calls, of groups that have those members.
TEST(Awaiting, InACircleOfGroupsWithoutNumbersIsToldOnceItLasts) {
  const auto in = [](int rank, std::vector<int> group) {
    RankDoing doing = Elsewhere(rank, {});
    doing.stand = Stand::kWaits;
    doing.phrase = "in all_reduce at t.py:8";
    doing.awaited = contract::Awaited{.ranks = std::move(group)};
    return doing;
  };
  const auto text = [](std::vector<RankDoing> ranks, bool lasting) {
    AddCalls(&ranks);
    return WhoWaitsText(ranks, {}, lasting);
  };
  const std::vector<RankDoing> crossed = {in(0, {0, 1, 2}), in(1, {0, 1, 3}), in(2, {0, 1, 2}),
                                          in(3, {0, 1, 3})};
  EXPECT_EQ(text(crossed, false), "");
  EXPECT_EQ(text(crossed, true).substr(0, 36), "ranks 0, 1 wait for each other, in c");
  EXPECT_EQ(text({in(0, {0, 1}), in(1, {0, 1}), in(2, {2, 3}), in(3, {2, 3})}, true), "");
}

TEST(Awaiting, OfAMissingSendIsForTheRankThatWaitsElsewhere) {
  EXPECT_EQ(
      Text({InCall(0, 7, 1, {In(7, 0, 1)}), InCall(1, 7, 1, {In(7, 1, 1)}), Receives(2, {1}, {In(7, 2)}),
            Receives(3, {2}, {In(7, 3)})}),
      "all ranks wait, ranks 2, 3 in a receive: if that lasts, rank 1 has not sent what rank 2 waits for");
}

}  // namespace
}  // namespace dtrun::verdict
