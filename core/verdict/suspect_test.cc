#include "core/verdict/suspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/stacks/doing.h"
#include "core/verdict/cause.h"
#include "core/verdict/testing.h"

namespace dtrun::verdict {
namespace {

using namespace testing;
using stacks::Stand;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(SuspectTest, IsTheRankThatStoodElsewhere) {
  facts_.ranks[0].tail = kTimedOut;
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:4");
  Does(2, Stand::kWaits, "in all_reduce at train.py:6");
  Does(3, Stand::kWaits, "in all_reduce at train.py:6");
  EXPECT_THAT(Verdict(),
              HasSubstr("failed after 20.0 s: rank 1 was in time.sleep at train.py:4; the others waited in "
                        "all_reduce at train.py:6\n"));
  EXPECT_THAT(Verdict(), HasSubstr("  host h, pid 101"));
  EXPECT_THAT(Verdict(), HasSubstr("  class: hang\n"));
  EXPECT_EQ(ExitCode(facts_), 1);
  EXPECT_EQ(FindCause(facts_).index, 1u);
}

TEST_F(SuspectTest, OfTwoTheOneThatErredIsBlamedAndTheOtherMentioned) {
  facts_.ranks[0].tail = kTimedOut;
  facts_.ranks[2].before = kOwn;
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:4");
  Does(2, Stand::kElsewhere, "in time.sleep at train.py:11");
  Does(3, Stand::kWaits, "in all_reduce at train.py:6");
  EXPECT_THAT(Verdict(), HasSubstr("rank 2 failed at train.py:9: ValueError: the true cause\n"));
  EXPECT_THAT(Verdict(), HasSubstr("  when rank 0 failed: "));
  EXPECT_THAT(Verdict(), HasSubstr("; rank 1 in time.sleep at train.py:4"));
}

TEST_F(SuspectTest, TellsThePlacesOfRanksThatAnMpirunHasStarted) {
  facts_.ranks[0].tail = kTimedOut;
  facts_.ranks[1].count = 2;
  facts_.ranks.resize(2);
  RankDoing sleeps;
  sleeps.rank = 2;
  sleeps.phrase = "in time.sleep at train.py:4";
  facts_.ranks[1].inside.push_back(sleeps);
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);
  EXPECT_THAT(Verdict(), HasSubstr("; rank 2 in time.sleep at train.py:4\n"));
}

TEST_F(SuspectTest, HasStacksOnlyWhereTheyWereWritten) {
  facts_.ranks[0].tail = kTimedOut;
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:40");
  EXPECT_THAT(Verdict(), Not(HasSubstr("stacks:")));
  facts_.stacks = true;
  EXPECT_THAT(VerdictText(facts_), HasSubstr("  stacks: /runs/1/stacks.txt\n"));
}

TEST_F(SuspectTest, IsNobodyWhenAllWaited) {
  facts_.ranks[0].tail = kTimedOut;
  for (std::size_t i = 1; i < 4; ++i) Does(i, Stand::kWaits, "in all_reduce at train.py:6");
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);
  EXPECT_THAT(Verdict(), HasSubstr("when it failed: ranks 0-3 in all_reduce at train.py:6\n"));
}

TEST_F(SuspectTest, OfARankThatShowsNoPlaceTheTracebackTellsIt) {
  facts_.ranks[0].tail = kTimedOut;
  facts_.ranks.resize(3);
  Does(1, Stand::kUnknown, stacks::kUnknownPlace);
  Does(2, Stand::kWaits, "in all_reduce at train.py:6");
  facts_.ranks[1].tail = {
      "Traceback (most recent call last):", "  File \"/home/u/train.py\", line 9, in <module>",
      "    world.broadcast(t)", "dtrun.Mismatch: call 1 on 'world' differs"};
  EXPECT_THAT(Verdict(),
              HasSubstr("when it failed: ranks 0, 2 in all_reduce at train.py:6; rank 1 at train.py:9\n"));
  Does(1, Stand::kUnknown, stacks::kRunning);
  EXPECT_THAT(VerdictText(facts_), HasSubstr("; rank 1 at train.py:9\n"));
  facts_.ranks[1].tail.clear();
  EXPECT_THAT(VerdictText(facts_), HasSubstr("; rank 1 running\n"));
  Does(1, Stand::kUnknown, stacks::kUnknownPlace);
  EXPECT_THAT(VerdictText(facts_), HasSubstr("when it failed: ranks 0, 2 in all_reduce at train.py:6\n"));
  facts_.ranks[0].tail = {"call 1 on 'world' differs: rank 0 calls a, rank 1 calls b"};
  facts_.ranks.resize(2);
  EXPECT_THAT(VerdictText(facts_), Not(HasSubstr("when it failed")));
}

TEST_F(SuspectTest, IsTheOnlyRankThatWaitedForSomethingElse) {
  facts_.ranks[0].tail = kTimedOut;
  for (std::size_t i = 1; i < 4; ++i) Does(i, Stand::kWaits, "in all_reduce at train.py:6");
  Does(2, Stand::kWaits, "in barrier at train.py:9");
  EXPECT_THAT(
      Verdict(),
      HasSubstr("rank 2 was in barrier at train.py:9; the others waited in all_reduce at train.py:6\n"));
  Does(3, Stand::kWaits, "in barrier at train.py:9");
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);
}

TEST_F(SuspectTest, IsNobodyOfTwoThatGaveUpInDifferentCallsBeforeTheyWereLookedAt) {
  facts_.ranks.resize(2);
  for (RankFacts& rank : facts_.ranks) {
    rank.tail = kTimedOut;
    rank.ending = process::Ending{1, 0};
    rank.signal_sent = 0;
  }
  facts_.ranks[1].tail[2] = "    dist.barrier()";
  facts_.ranks[1].tail[3].replace(facts_.ranks[1].tail[3].rfind("all_reduce"), 10, "barrier");
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 in all_reduce at train.py:6; rank 1 in barrier at train.py:6\n"));
  EXPECT_THAT(Verdict(), HasSubstr("class: hang\n"));
}

TEST_F(SuspectTest, IsNobodyOfTwoThatWaitedInDifferentCallsWhichIsAHang) {
  facts_.ranks.resize(2);
  facts_.ranks[0].tail = kTimedOut;
  Does(1, Stand::kWaits, "in barrier at train.py:9");
  EXPECT_THAT(
      Verdict(),
      HasSubstr(
          "the ranks waited in different calls: rank 0 in all_reduce at train.py:6; rank 1 in barrier at "
          "train.py:9\n  rank 0 exited with code 1, in all_reduce at train.py:6: "));
  EXPECT_THAT(Verdict(), HasSubstr("  next: compare these places: every rank has to call the same"));
  EXPECT_THAT(Verdict(), HasSubstr("class: hang\n"));
  Does(1, Stand::kWaits, "in all_reduce at train.py:6");
  EXPECT_THAT(Verdict(), HasSubstr("class: network\n"));
  Does(1, Stand::kWaits, "in barrier at train.py:9");
  facts_.ranks[0].tail = kClosed;  // no timeout
  EXPECT_THAT(Verdict(), HasSubstr("class: network\n"));
  facts_.ranks[1].tail = kTimedOut;  // the rank that closed that connection
  facts_.ranks[1].ending = process::Ending{1, 0};
  facts_.ranks[1].signal_sent = 0;
  EXPECT_THAT(Verdict(), HasSubstr(": the ranks waited in different calls: "));
}

TEST_F(SuspectTest, IsTheRankThatLivesAndHasClosedItsConnections) {
  facts_.ranks[0].tail = kClosed;
  for (std::size_t i : {2, 3}) {
    facts_.ranks[i].ending = process::Ending{1, 0};
    facts_.ranks[i].signal_sent = 0;
    facts_.ranks[i].tail = kClosed;
  }
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:8");
  const Suspicion suspicion = Suspect(facts_, 0);
  EXPECT_EQ(suspicion.kind, Suspicion::Kind::kClosed);
  EXPECT_THAT(suspicion.indices, ElementsAre(1));
  EXPECT_THAT(Verdict(), HasSubstr("rank 1 lived, and was in time.sleep at train.py:8, when the others"));
}

TEST_F(SuspectTest, IsTheRankThatAllReportsMissAtAPlaceOfUnknownKind) {
  const std::string what = "allreduce #6 on 'world' (float32 x 4) did not end within 6s: rank 1 is missing";
  facts_.ranks[0].tail = {"allreduce: " + what};
  for (std::size_t i : {0, 2, 3}) facts_.ranks[i].reports = {{1, what, {}}};
  Does(1, Stand::kUnknown, "in pthread_mutex_lock at s.c:20");
  EXPECT_THAT(Suspect(facts_, 0).indices, ElementsAre(1));
  EXPECT_THAT(Verdict(), HasSubstr("rank 1 was in pthread_mutex_lock at s.c:20"));
  facts_.ranks[1].reports = {{2, what, {}}};  // it waited itself
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);
}

TEST_F(SuspectTest, OfAStallInDifferentCollectivesIsNobody) {
  facts_.first_failed = -1;
  facts_.stalled = "10.0 s";
  facts_.ranks.resize(2);
  facts_.ranks[0].ending = process::Ending{0, SIGTERM};
  facts_.ranks[0].signal_sent = SIGTERM;
  Does(0, Stand::kWaits, "in all_reduce at train.py:6");
  Does(1, Stand::kWaits, "in torch.broadcast at train.py:8");
  EXPECT_THAT(Verdict(),
              HasSubstr(": no progress for 10.0 s, and the ranks waited in different collectives\n  "
                        "rank 0 in all_reduce at train.py:6; rank 1 in torch.broadcast at"));
  EXPECT_THAT(Verdict(), HasSubstr("  next: compare these places: every rank has to call the same"));
}

TEST_F(SuspectTest, OfAStallIsTheRankThatDoesNotWait) {
  facts_.first_failed = -1;
  facts_.stalled = "10.0 s";
  facts_.ranks.resize(2);
  facts_.ranks[0].ending = process::Ending{0, SIGTERM};
  facts_.ranks[0].signal_sent = SIGTERM;
  Does(0, Stand::kWaits, "in all_reduce at train.py:6");
  Does(1, Stand::kElsewhere, "in open at train.py:4");
  EXPECT_THAT(Verdict(), HasSubstr(": no progress for 10.0 s: rank 1 was in open at train.py:4; the others "
                                   "waited in all_reduce at train.py:6\n  host h, pid 101\n"));
  EXPECT_THAT(Verdict(), HasSubstr("class: hang\n"));
  EXPECT_THAT(VerdictJson({facts_}), HasSubstr("\"why\": \"stood still\",\n    \"seen_first\": null"));
  Does(0, Stand::kElsewhere, "in time.sleep at train.py:6");  // no rank waits for another
  EXPECT_THAT(Verdict(), HasSubstr(", and no rank at work\n  rank 0 in time.sleep at train.py:6; rank 1 in "
                                   "open at train.py:4\n"));
}

TEST_F(SuspectTest, OfAStallIsNotTheOneRankInAReceive) {
  facts_.first_failed = -1;
  facts_.stalled = "10.0 s";
  facts_.ranks.resize(3);
  for (std::size_t i = 0; i < 2; ++i) Does(i, Stand::kWaits, "in time.sleep at train.py:6");
  Does(2, Stand::kWaits, "in recv at train.py:9");
  EXPECT_THAT(Verdict(), HasSubstr("rank 2 was in recv"));
  facts_.ranks[2].doing->awaited = contract::Awaited{.ranks = {1}};
  EXPECT_THAT(Verdict(), HasSubstr(", and no rank at work\n"));
}

TEST_F(SuspectTest, OfAStallIsAmongTheRanksThatAreAwaited) {
  facts_.first_failed = -1;
  facts_.stalled = "10.0 s";
  facts_.ranks.resize(3);
  Does(0, Stand::kWaits, "in all_reduce at train.py:6");
  Does(1, Stand::kElsewhere, "in open at train.py:4");
  Does(2, Stand::kElsewhere, "in evaluate at train.py:9");
  facts_.ranks[0].doing->awaited = contract::Awaited{.ranks = {1}};
  EXPECT_THAT(Verdict(), HasSubstr("no progress for 10.0 s: rank 1 was in open at train.py:4"));
}

const std::vector<std::string> kNoPeerCame = {
    "Traceback (most recent call last):", "  File \"/home/u/train.py\", line 3, in <module>",
    "  File \"/usr/lib/python3/dist-packages/torch/distributed/rendezvous.py\", line 177, in "
    "_create_c10d_store",
    "TimeoutError: The client socket has timed out after 4s while trying to connect to (127.0.0.1, 29777)."};

TEST_F(SuspectTest, IsTheRankThatLookedForTheOthersElsewhere) {
  facts_.ranks.resize(2);
  facts_.ranks[0].tail = kNoPeerCame;
  facts_.ranks[1].overrides = {{1, "MASTER_PORT", "29777", "12355"}};
  EXPECT_THAT(Verdict(), HasSubstr(": rank 1 set MASTER_PORT to 12355, where dtrun set 29777\n"));
  EXPECT_THAT(Verdict(), HasSubstr("  next: let the program take MASTER_ADDR, MASTER_PORT"));
  EXPECT_THAT(Verdict(), HasSubstr("class: user-error\n"));
  EXPECT_THAT(VerdictJson({facts_}), HasSubstr("\"why\": \"changed variables\""));
  facts_.ranks[0].tail = kTimedOut;  // they had joined
  EXPECT_THAT(Verdict(), Not(HasSubstr("12355")));
}

TEST_F(SuspectTest, IsNobodyWhenAllChangedTheVariablesAlike) {
  facts_.ranks[0].tail = kNoPeerCame;
  for (int i = 0; i < 4; ++i)
    facts_.ranks[static_cast<std::size_t>(i)].overrides = {{i, "WORLD_SIZE", "4", "8"}};
  EXPECT_THAT(Verdict(), HasSubstr(": rank 0 exited with code 1, in _create_c10d_store at train.py:3: "));
  EXPECT_THAT(Verdict(), HasSubstr("  ranks 0-3 set WORLD_SIZE to 8, where dtrun set 4\n"));
  EXPECT_THAT(Verdict(), HasSubstr("  next: let the program take MASTER_ADDR, MASTER_PORT"));
  EXPECT_THAT(Verdict(), HasSubstr("class: rendezvous\n"));
}

TEST_F(SuspectTest, OfAStallAtTheStartIsTheRankThatLooksElsewhere) {
  facts_.first_failed = -1;
  facts_.stalled = "10.0 s";
  facts_.ranks.resize(2);
  for (std::size_t i = 0; i < 2; ++i) Does(i, Stand::kWaits, "in _create_c10d_store at train.py:3");
  facts_.ranks[1].overrides = {{1, "RANK", "1", "0"}};
  EXPECT_THAT(Verdict(), HasSubstr(", and no rank at work\n"));
  facts_.ranks[0].doing->joins = true;
  EXPECT_THAT(Verdict(), HasSubstr(": no progress for 10.0 s: rank 1 set RANK to 0, where dtrun set 1\n"));
}

TEST_F(SuspectTest, IsNobodyWhoWaitedForALockOfTheFirst) {
  facts_.ranks.resize(2);
  facts_.ranks[0].tail = kTimedOut;
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:5");  // rank 0 ended and freed the lock
  facts_.ranks[1].lock = FileLock{0, std::chrono::seconds(19)};
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);
  EXPECT_THAT(Verdict(), HasSubstr("  rank 1 waited for the lock of a file that rank 0 held\n"));
  EXPECT_THAT(Verdict(), HasSubstr("  next: release that lock before the call"));
  EXPECT_THAT(Verdict(), HasSubstr("class: hang\n"));
}

TEST_F(SuspectTest, IsAtItsPlaceWhateverItsDataLoaderDoes) {
  facts_.ranks[0].tail = kTimedOut;
  for (std::size_t i = 1; i < 4; ++i) {
    Does(i, Stand::kElsewhere, "in __next__ at train.py:4");
    facts_.ranks[i].doing->beside = "waits for its data loader; a worker is at data.py:" + std::to_string(i);
  }
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);  // a common slow step
  EXPECT_THAT(Verdict(), HasSubstr("rank 2 in __next__ at train.py:4 (waits for its data loader; a worker is "
                                   "at data.py:2); rank 3 in"));
}

TEST_F(SuspectTest, IsNotToldWhatToDoAboutASymptomOfItsOwn) {
  facts_.ranks[0].tail = kTimedOut;
  facts_.ranks[1].tail = kClosed;
  facts_.ranks[1].ending = process::Ending{1, 0};
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:4");
  Does(2, Stand::kWaits, "in all_reduce at train.py:6");
  EXPECT_THAT(Verdict(), HasSubstr("rank 1 was in time.sleep at train.py:4"));
  EXPECT_THAT(Verdict(), HasSubstr("known failure: a peer"));
  EXPECT_THAT(Verdict(), HasSubstr("  next: check that place: the other ranks waited"));
}

TEST_F(SuspectTest, IsNobodyWhoHasSaidThatItWaitedToo) {
  facts_.ranks[0].tail = kTimedOut;
  facts_.ranks[2].before = kTimedOut;
  Does(2, Stand::kElsewhere, "in Thread.join at train.py:30");  // exiting
  Does(1, Stand::kMayWait, "in Tensor.backward at train.py:5");
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);
}

TEST_F(SuspectTest, IsNobodyAmongManyWhoAreElsewhereAtOnce) {
  facts_.ranks[0].tail = kTimedOut;
  for (std::size_t i = 1; i < 4; ++i) Does(i, Stand::kElsewhere, "in load at data.py:6");
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);
  Does(2, Stand::kElsewhere, "in save at data.py:9");
  EXPECT_THAT(Suspect(facts_, 0).indices, ElementsAre(2u));
}

TEST_F(SuspectTest, AreAllWhoSleepHoweverMany) {
  facts_.ranks[0].tail = kTimedOut;
  for (std::size_t i = 1; i < 4; ++i) Does(i, Stand::kElsewhere, "in time.sleep at train.py:4");
  EXPECT_THAT(Verdict(),
              HasSubstr(": ranks 1-3 were in time.sleep at train.py:4; the others waited in all_reduce"));
  EXPECT_THAT(Verdict(), HasSubstr("class: hang\n"));
  Does(3, Stand::kElsewhere, "in time.sleep at train.py:9");
  EXPECT_THAT(Suspect(facts_, 0).indices, ElementsAre(1u, 2u, 3u));
}

TEST(PlacesText, PutsRanksTogether) {
  RankDoing one, two, three;
  one.rank = 0, two.rank = 1, three.rank = 2;
  one.phrase = three.phrase = "in all_reduce at t.py:8";
  two.phrase = "in time.sleep at t.py:6";
  EXPECT_EQ(PlacesText({one, two, three}),
            "ranks 0, 2 in all_reduce at t.py:8; rank 1 in time.sleep at t.py:6");
  EXPECT_THAT(PlacesText({one, two, three}, {1}), Not(HasSubstr("sleep")));
}

}  // namespace
}  // namespace dtrun::verdict
