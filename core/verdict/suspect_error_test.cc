// Suspicions based on errors that ranks printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/verdict/cause.h"
#include "core/verdict/suspect.h"
#include "core/verdict/testing.h"

namespace dtrun::verdict {
namespace {

using namespace testing;
using stacks::Stand;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(SuspectTest, IsTheRankThatPrintedAnErrorOfItsOwnAndWasSlowToEnd) {
  facts_.ranks[0].tail = kClosed;
  facts_.ranks[1].before = {"epoch 3"};
  facts_.ranks[2].before = kOwn;
  facts_.ranks[3].before = kClosed;
  EXPECT_THAT(Verdict(),
              HasSubstr("failed after 20.0 s: rank 2 failed at train.py:9: ValueError: the true cause\n"));
  EXPECT_THAT(Verdict(), HasSubstr("first failed exit: rank 0 exited with code 1: RuntimeError: "));
  EXPECT_THAT(Verdict(), HasSubstr("class: user-error\n"));
  EXPECT_EQ(ExitCode(facts_), 1);
}

TEST_F(SuspectTest, IsTheRankThatAbortedTheCommunicatorInWhichTheFirstFailed) {
  const std::map<std::string, std::string> failed = {{"communicator", "world"}, {"call", "barrier"}};
  const std::map<std::string, std::string> aborts = {
      {"communicator", "world"}, {"call", "abort"}, {"reason", "bad data"}};
  facts_.ranks[0].reports = {{-1, "'world' was aborted: bad data", {}, ErrorId::kAborted, failed}};
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 exited with code 1"));
  facts_.ranks[2].reports = {{-1, "'world' was aborted: bad data", {}, ErrorId::kAborted, aborts}};
  EXPECT_THAT(Verdict(), HasSubstr("failed after 20.0 s: rank 2 aborted 'world': bad data\n"));
  EXPECT_THAT(Verdict(), HasSubstr("class: user-error\n"));
  facts_.ranks[0].reports[0].args["communicator"] = "part";  // the abort was another's
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 exited with code 1"));
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
  Does(1, Stand::kUnknown, "in futex");  // may be exiting
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

TEST_F(SuspectTest, IsNoRankThatLeftWhereALivingOneIsMissed) {
  facts_.ranks[0].reports = {
      {1, "rank 1 left 'world.1:0' without making this call", {0, 1, 2}, ErrorId::kPeerFailed}};
  facts_.ranks[2].ending = process::Ending{};
  facts_.ranks[2].signal_sent = 0;
  facts_.ranks[2].ended_at = milliseconds(19'000);
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
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 exited with code 1, at train.py:6: "));
  EXPECT_THAT(Verdict(), HasSubstr("  before it: ranks 1-3 had exited with code 0\n"));
  EXPECT_THAT(Verdict(), HasSubstr("  next: rank 0 called a collective that needs ranks which had finished"));
  EXPECT_THAT(Verdict(), HasSubstr("class: user-error\n"));
  facts_.ranks[2].ending = process::Ending{1, 0};  // it ended for another reason
  EXPECT_THAT(Verdict(), Not(HasSubstr("which had finished")));
}

TEST_F(SuspectTest, IsNobodyWhenAConnectionToSomethingElseFailed) {
  facts_.ranks[0].tail = {
      "Traceback (most recent call last):", "  File \"/home/u/log.py\", line 9, in <module>",
      "ConnectionRefusedError: [Errno 111] Connection refused"};
  facts_.ranks[2].ending = process::Ending{};
  facts_.ranks[2].signal_sent = 0;
  facts_.ranks[2].ended_at = milliseconds(19'000);
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 exited with code 1, at log.py:9: "));
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
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 exited with code 1, in post at log.py:9: "));
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
              HasSubstr(": rank 1 failed: ValueError: the true cause\n"));  // no code caught it
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
    EXPECT_THAT(Verdict(),
                HasSubstr(std::string(": rank 0 exited with code 1, at train.py:9: RuntimeError: ") + text))
        << text;
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

TEST_F(SuspectTest, HowTheCallsDifferIsTheHeadlineWhereTheRecorderFoundIt) {
  facts_.calls_differ =
      "call 1 on 'world' differs: rank 0 calls allreduce (float32 x 4, sum), rank 1 calls barrier";
  facts_.ranks[0].ending = process::Ending{1, 0};
  facts_.ranks[0].reports = {{1, "barrier #1: rank 1 gave 'world' up"}};
  EXPECT_THAT(Verdict(),
              HasSubstr(": the ranks' calls do not match: rank 0 calls allreduce (float32 x 4, sum), rank 1 "
                        "calls barrier\n  rank 0 exited with code 1\n"));
  EXPECT_THAT(Verdict(), HasSubstr("  next: make all ranks call the same in the same order"));
  EXPECT_THAT(Verdict(), HasSubstr("  class: user-error\n"));
  Does(0, Stand::kWaits, "in all_reduce at train.py:6");
  Does(1, Stand::kWaits, "in barrier at train.py:9");
  EXPECT_THAT(Verdict(),
              HasSubstr("rank 1 calls barrier\n  rank 0 in all_reduce at train.py:6; rank 1 in barrier at "
                        "train.py:9\n  rank 0 exited with code 1\n"));
  Does(0, Stand::kUnknown, "in poll");
  Does(1, Stand::kUnknown, "in clock_nanosleep");
  EXPECT_THAT(Verdict(), HasSubstr("rank 1 calls barrier\n  rank 0 exited with code 1\n"));
}

TEST_F(SuspectTest, HowTheCallsDifferIsTheHeadlineWhereTheRankSaysIt) {
  facts_.ranks[0].tail = {
      "train: call 1 on 'world' differs: rank 0 calls barrier, rank 1 calls broadcast (int8 x 1)"};
  facts_.ranks[0].ending = process::Ending{1, 0};
  EXPECT_THAT(Verdict(),
              HasSubstr(": the ranks' calls do not match: rank 0 calls barrier, rank 1 calls broadcast"));
}

TEST_F(SuspectTest, IsNobodyWhoSaysOfItsOwnCallThatItDiffers) {
  const std::string differ = "call 4 on 'world' differs: rank 0 calls allreduce, rank 1 calls broadcast";
  facts_.ranks[0].tail = {"dtrun.errors.Mismatch: allreduce: " + differ};
  facts_.ranks[0].ending = process::Ending{1, 0};
  facts_.ranks[1].tail = {"dtrun.errors.Mismatch: broadcast: " + differ};
  facts_.ranks[1].ending = process::Ending{1, 0};
  EXPECT_EQ(Suspect(facts_, 0).kind, Suspicion::Kind::kNone);
  EXPECT_THAT(Verdict(), HasSubstr(": the ranks' calls do not match: rank 0 calls allreduce, rank 1 calls"));
}

TEST_F(SuspectTest, CallsThatDifferAreTheHeadline) {
  facts_.ranks[0].tail = {"terminate called after throwing an instance of 'gloo::EnforceNotMet'",
                          "  what():  [enforce fail at ../third_party/gloo/gloo/transport/tcp/pair.cc:490] "
                          "op.preamble.length <= op.nbytes. 4000 vs 4"};
  facts_.ranks[0].ending = process::Ending{0, SIGABRT};
  EXPECT_THAT(Verdict(), HasSubstr(": the ranks' calls do not match: rank 0 was killed by signal 6"));
  EXPECT_THAT(Verdict(), HasSubstr("class: user-error\n"));
}

TEST_F(SuspectTest, IsNobodyWhenTheFirstFailedForItself) {
  facts_.ranks[0].tail = kOwn;
  facts_.ranks[2].before = {"RuntimeError: something else"};
  Does(1, Stand::kElsewhere, "in time.sleep at train.py:4");
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 exited with code 1, at train.py:9: "));
  EXPECT_EQ(FindCause(facts_).suspicion.kind, Suspicion::Kind::kNone);
}

TEST_F(SuspectTest, AllRanksMayFailAlike) {
  for (RankFacts& rank : facts_.ranks) {
    rank.tail = {"Traceback (most recent call last):", "  File \"t.py\", line 1, in <module>",
                 "FileNotFoundError: no 'data-" + std::to_string(rank.rank) + "'"};
  }
  EXPECT_THAT(Verdict(), HasSubstr("  all 4 ranks failed the same way\n"));
  facts_.ranks[3].tail = {"epoch 1"};
  EXPECT_THAT(Verdict(), HasSubstr("  ranks 0-2 failed the same way\n"));
}

TEST_F(SuspectTest, PythonsMemoryErrorHasAClass) {
  facts_.ranks[0].tail = {"Traceback (most recent call last):", "  File \"t.py\", line 1, in <module>",
                          "MemoryError"};
  EXPECT_THAT(Verdict(), HasSubstr("class: out-of-memory\n"));
  EXPECT_THAT(Verdict(), HasSubstr("  next: use less memory per rank"));
}

TEST_F(SuspectTest, IsTheRankWhoseErrorWasPrintedFirst) {
  facts_.ranks[0].tail = kOwn;
  facts_.ranks[0].erred_at = std::chrono::milliseconds(19'900);
  facts_.ranks[2].before = {"Traceback (most recent call last):",
                            "  File \"/home/u/train.py\", line 3, in <module>", "KeyError: 'labels'"};
  facts_.ranks[2].erred_at = std::chrono::milliseconds(19'850);
  EXPECT_THAT(Verdict(), HasSubstr("rank 2 failed at train.py:3: KeyError: 'labels'\n"));
  Does(2, Stand::kWaits, "in all_reduce at train.py:9");  // it has caught that error
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 exited with code 1, at train.py:9: "));
  facts_.ranks[2].doing.reset();
  facts_.ranks[2].erred_at = std::chrono::milliseconds(19'950);
  EXPECT_THAT(Verdict(), HasSubstr("rank 0 exited with code 1, at train.py:9: "));
}

TEST_F(SuspectTest, QuotesADifferenceOfCallsThatAreNoLongerRemembered) {
  facts_.calls_differ = "the calls 1 to 64 on 'world' differ between rank 0 and rank 1";
  EXPECT_THAT(Verdict(), HasSubstr("calls do not match: the calls 1 to 64 on 'world' differ between"));
}

}  // namespace
}  // namespace dtrun::verdict
