#include "core/verdict/suspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/verdict/cause.h"
#include "core/verdict/recognise.h"
#include "core/verdict/verdict.h"

namespace dtrun::verdict {
namespace {

using stacks::Stand;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::vector<std::string> kTimedOut = {
    "Traceback (most recent call last):",
    "  File \"/home/u/train.py\", line 6, in <module>",
    "    dist.all_reduce(t)",
    "  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", line 1322, in "
    "all_reduce",
    "    work.wait()",
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 20000ms "
    "for recv "
    "operation to complete"};
const std::vector<std::string> kClosed = {
    "Traceback (most recent call last):", "  File \"/home/u/train.py\", line 6, in <module>",
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer "
    "[127.0.0.1]:4711"};
const std::vector<std::string> kOwn = {
    "Traceback (most recent call last):", "  File \"/home/u/train.py\", line 9, in <module>",
    "ValueError: the true cause"};

// Four ranks, of which rank 0 failed first and the others were stopped by dtrun.
class SuspectTest : public ::testing::Test {
 protected:
  SuspectTest() {
    facts_.job = "j";
    facts_.logs = "/runs/1";
    facts_.first_failed = 0;
    for (int i = 0; i < 4; ++i) {
      RankFacts rank;
      rank.rank = i;
      rank.host = "h";
      rank.pid = 100 + i;
      rank.ending = i == 0 ? process::Ending{1, 0} : process::Ending{0, SIGTERM};
      rank.signal_sent = i == 0 ? 0 : SIGTERM;
      rank.ended_at = milliseconds(i == 0 ? 20'000 : 20'100);
      facts_.ranks.push_back(rank);
    }
  }

  void Does(std::size_t rank, Stand stand, const std::string& phrase) {
    RankDoing doing;
    doing.rank = static_cast<int>(rank);
    doing.stand = stand;
    doing.phrase = phrase;
    facts_.ranks[rank].doing = doing;
  }
  std::string Verdict() {
    EXPECT_TRUE(Recognise(&facts_));
    return VerdictText(facts_);
  }

  Facts facts_;
};

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
  EXPECT_THAT(Verdict(), HasSubstr("rank 2 failed: ValueError: the true cause\n"));
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
  facts_.ranks[1].Saw(sleeps);
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);
  EXPECT_THAT(Verdict(), HasSubstr("; rank 2 in time.sleep at train.py:4\n"));
}

TEST_F(SuspectTest, IsNobodyWhenAllWaited) {
  facts_.ranks[0].tail = kTimedOut;
  for (std::size_t i = 1; i < 4; ++i) Does(i, Stand::kWaits, "in all_reduce at train.py:6");
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);
  EXPECT_THAT(Verdict(), HasSubstr("when it failed: ranks 0-3 in all_reduce at train.py:6\n"));
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
  EXPECT_THAT(Verdict(), HasSubstr("failed after 20.0 s: rank 0 exited with code 1\n"));
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 in all_reduce at train.py:6; rank 1 in barrier at train.py:9\n"));
  EXPECT_THAT(Verdict(), HasSubstr("  next: compare these places: every rank has to call the same"));
  EXPECT_THAT(Verdict(), HasSubstr("class: hang\n"));
  Does(1, Stand::kWaits, "in all_reduce at train.py:6");
  EXPECT_THAT(Verdict(), HasSubstr("class: network\n"));
  Does(1, Stand::kWaits, "in barrier at train.py:9");
  facts_.ranks[0].tail = kClosed;  // nobody has waited until a limit
  EXPECT_THAT(Verdict(), HasSubstr("class: network\n"));
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
  Does(0, Stand::kElsewhere, "in time.sleep at train.py:6");  // nobody waits for another
  EXPECT_THAT(Verdict(), HasSubstr(", and no rank at work\n  rank 0 in time.sleep at train.py:6; rank 1 in "
                                   "open at train.py:4\n"));
}

const std::vector<std::string> kNobodyCame = {
    "Traceback (most recent call last):", "  File \"/home/u/train.py\", line 3, in <module>",
    "  File \"/usr/lib/python3/dist-packages/torch/distributed/rendezvous.py\", line 177, in "
    "_create_c10d_store",
    "TimeoutError: The client socket has timed out after 4s while trying to connect to (127.0.0.1, 29777)."};

TEST_F(SuspectTest, IsTheRankThatLookedForTheOthersElsewhere) {
  facts_.ranks.resize(2);
  facts_.ranks[0].tail = kNobodyCame;
  facts_.ranks[1].overrides = {{1, "MASTER_PORT", "29777", "12355"}};
  EXPECT_THAT(Verdict(), HasSubstr(": rank 1 set MASTER_PORT to 12355, where dtrun set 29777\n"));
  EXPECT_THAT(Verdict(), HasSubstr("  next: let the program take MASTER_ADDR, MASTER_PORT"));
  EXPECT_THAT(Verdict(), HasSubstr("class: user-error\n"));
  EXPECT_THAT(VerdictJson({facts_}), HasSubstr("\"why\": \"changed variables\""));
  facts_.ranks[0].tail = kTimedOut;  // they had met
  EXPECT_THAT(Verdict(), Not(HasSubstr("12355")));
}

TEST_F(SuspectTest, IsNobodyWhenAllChangedTheVariablesAlike) {
  facts_.ranks[0].tail = kNobodyCame;
  for (int i = 0; i < 4; ++i)
    facts_.ranks[static_cast<std::size_t>(i)].overrides = {{i, "WORLD_SIZE", "4", "8"}};
  EXPECT_THAT(Verdict(), HasSubstr("failed after 20.0 s: rank 0 exited with code 1\n"));
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
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:5");  // the lock is free since the end of rank 0
  facts_.ranks[1].locked_out_by = 0;
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
  EXPECT_THAT(Verdict(), HasSubstr("  next: check that place: every rank has to call"));
}

TEST_F(SuspectTest, IsNobodyWhoHasSaidThatItWaitedToo) {
  facts_.ranks[0].tail = kTimedOut;
  facts_.ranks[2].before = kTimedOut;
  Does(2, Stand::kElsewhere, "in Thread.join at train.py:30");  // on its way out
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

TEST_F(SuspectTest, IsTheRankThatPrintedAnErrorOfItsOwnAndWasSlowToEnd) {
  facts_.ranks[0].tail = kClosed;
  facts_.ranks[1].before = {"epoch 3"};
  facts_.ranks[2].before = kOwn;
  facts_.ranks[3].before = kClosed;
  EXPECT_THAT(Verdict(), HasSubstr("failed after 20.0 s: rank 2 failed: ValueError: the true cause\n"));
  EXPECT_THAT(Verdict(), HasSubstr("seen first: rank 0 exited with code 1: RuntimeError: "));
  EXPECT_THAT(Verdict(), HasSubstr("class: user-error\n"));
  EXPECT_EQ(ExitCode(facts_), 1);
}

TEST_F(SuspectTest, IsNotARankThatHasCaughtItsErrorAndWaitsWithTheOthers) {
  facts_.ranks[0].tail = kTimedOut;
  facts_.ranks[1].before = kOwn;
  Does(1, Stand::kWaits, "in all_reduce at train.py:6");
  Does(2, Stand::kElsewhere, "in time.sleep at train.py:4");
  Does(3, Stand::kWaits, "in all_reduce at train.py:6");
  const Suspicion found = Suspect(facts_, 0);
  EXPECT_EQ(found.kind, Suspicion::Kind::kStoodStill);
  EXPECT_THAT(found.indices, ElementsAre(2u));
  Does(2, Stand::kWaits, "in all_reduce at train.py:6");
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);
  Does(1, Stand::kUnknown, "in futex");  // it may be on its way out
  EXPECT_THAT(Suspect(facts_, 0).indices, ElementsAre(1u));
  Does(2, Stand::kElsewhere, "in time.sleep at train.py:4");
  EXPECT_THAT(Suspect(facts_, 0).indices, ElementsAre(2u));
}

TEST_F(SuspectTest, AreTwoOfThreeWhoStandAtTwoPlaces) {
  facts_.ranks.pop_back();
  facts_.ranks[0].tail = kTimedOut;
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:4");
  Does(2, Stand::kElsewhere, "at train.py:5 (`while True: pass`)");
  EXPECT_THAT(Verdict(), HasSubstr(": rank 1 was in time.sleep at train.py:4; rank 2 was at train.py:5"));
  EXPECT_THAT(Verdict(), HasSubstr("class: hang\n"));
}

TEST_F(SuspectTest, IsTheOneOfTwoThatLeft) {
  facts_.ranks.resize(2);
  facts_.ranks[0].tail = kClosed;
  facts_.ranks[1].ending = process::Ending{};
  facts_.ranks[1].signal_sent = 0;
  facts_.ranks[1].ended_at = milliseconds(19'000);
  EXPECT_THAT(Verdict(), HasSubstr(": rank 1 exited with code 0 while others still needed it\n"));
  EXPECT_THAT(Verdict(), HasSubstr("class: user-error\n"));
}

TEST_F(SuspectTest, IsNotARankThatPrintedAnErrorBecauseItWasStopped) {
  facts_.ranks[0].tail = kClosed;
  facts_.ranks[2].tail = kOwn;  // after dtrun's SIGTERM
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);
}

TEST_F(SuspectTest, IsARankThatLeftWhileOthersNeededIt) {
  facts_.ranks[0].tail = kClosed;
  facts_.ranks[2].ending = process::Ending{};
  facts_.ranks[2].signal_sent = 0;
  facts_.ranks[2].ended_at = milliseconds(19'000);
  EXPECT_THAT(Verdict(), HasSubstr("rank 2 exited with code 0 while others still needed it\n"));
  EXPECT_THAT(Verdict(), HasSubstr("class: user-error\n"));
}

TEST_F(SuspectTest, IsNobodyWhenMostRanksHadFinishedAndOneCalledOnceMore) {
  facts_.ranks[0].tail = kClosed;
  for (std::size_t i = 1; i < facts_.ranks.size(); ++i) {
    facts_.ranks[i].ending = process::Ending{};
    facts_.ranks[i].signal_sent = 0;
    facts_.ranks[i].ended_at = milliseconds(19'000);
  }
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 exited with code 1\n"));
  EXPECT_THAT(Verdict(), HasSubstr("  before it: ranks 1-3 had exited with code 0\n"));
  EXPECT_THAT(Verdict(), HasSubstr("  next: rank 0 called a collective that needs ranks which had finished"));
  EXPECT_THAT(Verdict(), HasSubstr("class: user-error\n"));
  facts_.ranks[2].ending = process::Ending{1, 0};  // that one's end is another story
  EXPECT_THAT(Verdict(), Not(HasSubstr("which had finished")));
}

TEST_F(SuspectTest, IsNobodyWhenAConnectionToSomethingElseFailed) {
  facts_.ranks[0].tail = {
      "Traceback (most recent call last):", "  File \"/home/u/log.py\", line 9, in <module>",
      "ConnectionRefusedError: [Errno 111] Connection refused"};
  facts_.ranks[2].ending = process::Ending{};
  facts_.ranks[2].signal_sent = 0;
  facts_.ranks[2].ended_at = milliseconds(19'000);
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 exited with code 1\n"));
  EXPECT_EQ(FindCause(facts_).suspicion.kind, Suspicion::Kind::kNone);
  facts_.ranks[0].tail.insert(facts_.ranks[0].tail.begin() + 2,
                              "  File \"/usr/lib/torch/distributed/rendezvous.py\", line 3, in start");
  EXPECT_THAT(Verdict(), HasSubstr("rank 2 exited with code 0 while others still needed it\n"));
}

TEST_F(SuspectTest, IsNobodyForTheNamesThatAProgramPrintsBesideAConnectionToSomethingElse) {
  facts_.ranks[0].tail = {"NCCL version 2.19.3+cuda12.3",
                          "loading MPI4 shards with tensorflow",
                          "Traceback (most recent call last):",
                          "  File \"/home/u/mpi4py-ray/log.py\", line 9, in <module>",
                          "  File \"/usr/lib/python3/dist-packages/requests/api.py\", line 3, in post",
                          "ConnectionResetError: [Errno 104] Connection reset by peer"};
  facts_.ranks[2].ending = process::Ending{};
  facts_.ranks[2].signal_sent = 0;
  facts_.ranks[2].ended_at = milliseconds(19'000);
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 exited with code 1\n"));
  EXPECT_THAT(Verdict(), HasSubstr("class: network\n"));
}

TEST_F(SuspectTest, IsNotARankThatHasPrintedMoreSinceItsError) {
  facts_.ranks[0].tail = kTimedOut;
  facts_.ranks[1].before = kOwn;
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:12");
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kErred);
  facts_.ranks[1].before.push_back("loading shard 3");
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kStoodStill);
}

TEST_F(SuspectTest, IsNotARankThatRunsOnBehindTheErrorThatItCaught) {
  facts_.ranks[0].tail = kTimedOut;
  facts_.ranks[1].before = kOwn;
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:12");
  facts_.ranks[1].doing->may_handle = false;
  EXPECT_THAT(Verdict(), HasSubstr(": rank 1 was in time.sleep at train.py:12"));
  EXPECT_THAT(Verdict(), HasSubstr("class: hang\n"));
  facts_.ranks[1].before.insert(facts_.ranks[1].before.begin(), "Exception in thread Thread-1 (load):");
  EXPECT_THAT(Verdict(),
              HasSubstr(": rank 1 failed: ValueError: the true cause\n"));  // nobody caught that one
}

TEST_F(SuspectTest, OfALostConnectionIsTheRankThatLeftAndNotOneAtWork) {
  facts_.ranks[0].tail = kClosed;
  Does(1, Stand::kElsewhere, "in sum at train.py:12");
  facts_.ranks[2].ending = process::Ending{};
  facts_.ranks[2].signal_sent = 0;
  facts_.ranks[2].ended_at = milliseconds(19'000);
  EXPECT_THAT(Verdict(), HasSubstr(": rank 2 exited with code 0 while others still needed it\n"));
}

TEST_F(SuspectTest, IsNobodyForATextOfPeersThatTheProgramItselfRaised) {
  for (const char* text : {"Socket Timeout", "Connection closed by peer [10.1.2.3]:5432",
                           "Read error [10.0.0.9]:443: Connection reset by peer"}) {
    facts_.ranks[0].tail = {"Traceback (most recent call last):",
                            "  File \"/home/u/train.py\", line 30, in <module>",
                            "    query()",
                            "  File \"/home/u/train.py\", line 9, in query",
                            "    raise RuntimeError(text)",
                            std::string("RuntimeError: ") + text};
    Does(1, Stand::kElsewhere, "in sum at train.py:12");
    EXPECT_THAT(Verdict(), HasSubstr(": rank 0 exited with code 1\n")) << text;
    EXPECT_THAT(Verdict(), HasSubstr("class: user-error\n")) << text;
  }
}

TEST_F(SuspectTest, RanksThatDidNotWaitAreNotSaidToHaveWaited) {
  facts_.ranks[0].tail = kTimedOut;
  Does(0, Stand::kWaits, "in all_reduce at train.py:6");
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:4");
  facts_.ranks.resize(2);
  EXPECT_THAT(Verdict(), HasSubstr("; the others waited in all_reduce"));
  facts_.ranks[0].tail = {"ERROR: Timed out waiting 20000ms for recv operation to complete"};
  Does(0, Stand::kUnknown, "running");
  EXPECT_THAT(Verdict(), HasSubstr("; the others: rank 0 running\n"));
}

TEST_F(SuspectTest, CallsThatDifferAreTheHeadline) {
  facts_.ranks[0].tail = {"terminate called after throwing an instance of 'gloo::EnforceNotMet'",
                          "  what():  [enforce fail at ../third_party/gloo/gloo/transport/tcp/pair.cc:490] "
                          "op.preamble.length <= op.nbytes. 4000 vs 4"};
  facts_.ranks[0].ending = process::Ending{0, SIGABRT};
  EXPECT_THAT(Verdict(), HasSubstr(": the ranks' calls do not fit together: rank 0 was killed by signal 6"));
  EXPECT_THAT(Verdict(), HasSubstr("class: user-error\n"));
}

TEST_F(SuspectTest, IsNobodyWhenTheFirstFailedForItself) {
  facts_.ranks[0].tail = kOwn;
  facts_.ranks[2].before = {"RuntimeError: something else"};
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:4");
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 exited with code 1\n"));
  EXPECT_EQ(FindCause(facts_).suspicion.kind, Suspicion::Kind::kNone);
}

TEST_F(SuspectTest, AllRanksMayFailAlike) {
  for (RankFacts& rank : facts_.ranks) {
    rank.tail = {"Traceback (most recent call last):", "  File \"t.py\", line 1, in <module>",
                 "FileNotFoundError: no 'data-" + std::to_string(rank.rank) + "'"};
  }
  EXPECT_THAT(Verdict(), HasSubstr("  all 4 ranks failed alike: FileNotFoundError: no 'data-0'\n"));
  facts_.ranks[3].tail = {"epoch 1"};
  EXPECT_THAT(Verdict(), HasSubstr("  ranks 0-2 failed alike: FileNotFoundError"));
}

TEST_F(SuspectTest, PythonsMemoryErrorHasAClass) {
  facts_.ranks[0].tail = {"Traceback (most recent call last):", "  File \"t.py\", line 1, in <module>",
                          "MemoryError"};
  EXPECT_THAT(Verdict(), HasSubstr("class: out-of-memory\n"));
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
