#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/stacks/doing.h"
#include "core/verdict/testing.h"

namespace dtrun::verdict {
namespace {

using namespace testing;
using stacks::Stand;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Rank `rank` waited in `call` for `peer` and raised dtrun's own Python error.
RankFacts MissedMessageOf(int rank, const std::string& call, const std::string& error) {
  RankFacts facts = Rank(rank, {1, 0, false}, std::chrono::milliseconds(4000 + rank));
  facts.joined = true;
  facts.tail = {"Traceback (most recent call last):",
                "  File \"/home/u/p2p.py\", line 3, in <module>",
                "    w.recv(x, 1 - w.rank)",
                "  File \"/opt/lib/python3/dist-packages/dtrun/communicator.py\", line 241, in recv",
                "    raise self._failure(what, status)",
                error + call};
  return facts;
}

TEST(SuspectOfAMissedCall, IsNobodyWhereEachWaitsForAMessageOfTheOther) {
  const std::string zero =
      "recv from rank 1 on 'world' (float64 x 3, tag 0) did not end within 4s: rank 1 has not sent it";
  const std::string one = "recv from rank 0 on 'world' (float64 x 3, tag 0): rank 0 gave up: " + zero;
  Facts facts = RunOf({MissedMessageOf(0, zero, "dtrun.errors.Timeout: "),
                       MissedMessageOf(1, one, "dtrun.errors.RemoteFailure: ")},
                      1);
  facts.ranks[0].reports = {{1, zero}};
  facts.ranks[1].reports = {{0, "rank 0 gave up: " + zero}, {0, one}};  // the backend's and the call's
  EXPECT_THAT(
      VerdictText(facts),
      AllOf(HasSubstr("ranks 0, 1 each waited for the other: ranks 0, 1 in recv at p2p.py:3"),
            HasSubstr("next: let one of them send while the other receives"), HasSubstr("class: hang")));
  // Two collectives of different groups cannot match either.
  facts.ranks[0].reports = {{1, "allreduce #1 on 'world.{0,1}' (float32 x 2, sum) did not end within 4s"}};
  facts.ranks[1].reports = {{0, "allreduce #1 on 'world.{0,1}#2' (float32 x 2, sum) did not end within 4s"}};
  EXPECT_THAT(VerdictText(facts), HasSubstr("each waited for the other"));
  facts.ranks[1].reports = {{0, "allreduce #1 on 'world.{0,1}' (float32 x 2, sum): rank 0 gave up"}};
  EXPECT_THAT(VerdictText(facts), Not(HasSubstr("each waited")));
  facts.ranks[0].reports = {{1, zero}};
  // A rank that sends does not wait for the same thing.
  facts.ranks[1].reports = {{0, "send to rank 0 on 'world' (float64 x 3, tag 0): rank 0 gave up: " + zero}};
  EXPECT_THAT(VerdictText(facts), AllOf(Not(HasSubstr("each waited")), Not(HasSubstr("do not match"))));
}

TEST(SuspectOfAMissedCall, IsNobodyWhereASendAndAReceiveDoNotMatch) {
  const std::string received = "recv from rank 1 on 'world' (float64 x 3, tag 0)";
  const std::string sent = "send to rank 0 on 'world' (float64 x 3, tag 1)";
  Facts facts = RunOf(
      {MissedMessageOf(0, received, "dtrun.errors.Timeout: "),
       MissedMessageOf(1, sent, "dtrun.errors.Timeout: "), Rank(2, kOk, std::chrono::milliseconds(200))},
      1);
  facts.ranks[0].reports = {{1, received + " timed out"}};
  facts.ranks[1].reports = {{0, sent + " timed out"}};
  EXPECT_THAT(VerdictText(facts),
              AllOf(HasSubstr("calls do not match: rank 1 sends (float64 x 3, tag 1), rank 0 "
                              "receives (float64 x 3, tag 0)\n"),
                    HasSubstr("next: make type, count and tag"), HasSubstr("class: user-error")));
  // Only the peer of a message can end it: rank 2 may leave.
  facts.first_failed = 0;
  facts.ranks[1] = Rank(1, kTerm, std::chrono::milliseconds(4500), SIGTERM);
  EXPECT_THAT(VerdictText(facts), Not(HasSubstr("rank 2 exited with code 0 while others still needed it")));
}

RankDoing SeenIn(const std::string& place) {
  RankDoing doing;
  doing.stand = Stand::kElsewhere;
  doing.phrase = place;
  return doing;
}

TEST(SuspectOfAMissedCall, IsNobodyOutsideOfTheCommunicatorInWhichARankWasMissed) {
  const std::string missing =
      "allreduce #1 on 'world.1:0' (float64 x 2, sum) did not end within 4s: rank 0 is missing";
  Facts facts = RunOf(
      {Rank(0, kTerm, std::chrono::milliseconds(4500), SIGTERM),
       Rank(1, {1, 0, false}, std::chrono::milliseconds(4100)), Rank(2, kOk, std::chrono::milliseconds(200))},
      1);
  for (RankFacts& rank : facts.ranks) rank.joined = true;
  facts.ranks[1].tail = {"dtrun.errors.Timeout: " + missing};
  facts.ranks[1].reports = {{0, missing, {0, 1}}};
  EXPECT_THAT(VerdictText(facts), Not(HasSubstr("rank 2 exited with code 0 while others still needed it")));
  facts.ranks[0].doing = SeenIn("in time.sleep at ps.py:6");
  EXPECT_THAT(VerdictText(facts), HasSubstr(": rank 0 was in time.sleep at ps.py:6"));
  // A living rank outside the communicator is not accused as well.
  facts.ranks[2] = Rank(2, kTerm, std::chrono::milliseconds(4500), SIGTERM);
  facts.ranks[2].doing = SeenIn("in time.sleep at ps.py:18");
  EXPECT_THAT(VerdictText(facts), HasSubstr(": rank 0 was in time.sleep at ps.py:6"));
}

TEST(SuspectOfAMissedCall, IsNobodyOutsideOfACircle) {
  std::vector<RankFacts> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    const int peer = (rank + 1) % 3;
    const std::string call =
        "recv from rank " + std::to_string(peer) + " on 'world.1:0' (float64 x 3, tag 0)";
    ranks.push_back(MissedMessageOf(rank, call, "dtrun.errors.RemoteFailure: "));
    // Rank 1 was the first to give up, and its failure has reached the others.
    const std::string ended =
        rank == 1 ? " did not end within 4s" : ": rank 1 gave up: recv from rank 2 on 'world.1:0'";
    ranks.back().reports = {{rank == 1 ? 2 : 1, call + ended, {0, 1, 2}}};
  }
  ranks.push_back(Rank(3, kTerm, std::chrono::milliseconds(4500), SIGTERM));
  ranks.back().doing = SeenIn("in time.sleep at d.py:7");
  const Facts facts = RunOf(std::move(ranks), 1);
  EXPECT_THAT(VerdictText(facts),
              AllOf(HasSubstr("ranks 0-2 each waited for the others: "), HasSubstr("class: hang")));
}

TEST(SuspectOfAMissedCall, IsNobodyWhoFailedLaterInAnotherGroup) {
  const std::string missing =
      "allreduce #1 on 'world.1:0' (float64 x 2, sum) did not end within 4s: rank 1 is missing";
  Facts facts = RunOf({Rank(0, {1, 0, false}, std::chrono::milliseconds(4480)),
                       Rank(1, kTerm, std::chrono::milliseconds(6000), SIGTERM),
                       Rank(2, {1, 0, false}, std::chrono::milliseconds(5780))},
                      0);
  for (RankFacts& rank : facts.ranks) rank.joined = true;
  facts.ranks[0].tail = {"dtrun.errors.Timeout: " + missing};
  facts.ranks[0].reports = {{1, missing, {0, 1}}};
  facts.ranks[1].doing = SeenIn("in time.sleep at d.py:7");
  facts.ranks[2].tail = kOwn;
  EXPECT_THAT(VerdictText(facts), HasSubstr(": rank 1 was in time.sleep at d.py:7"));
}

}  // namespace
}  // namespace dtrun::verdict
