#include "core/verdict/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json.h"
#include "core/verdict/testing.h"

namespace dtrun::verdict {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using testing::kKill;
using testing::kOk;
using testing::kTerm;
using testing::Rank;
using testing::RunOf;

TEST(Verdict, EndsWithTheWarningThatRanksWorkedAlone) {
  Facts facts = RunOf({Rank(0, kOk, milliseconds(3200)), Rank(1, kOk, milliseconds(3100))}, -1);
  facts.worked_alone = "set job.pmi = \"pmix\"";
  EXPECT_EQ(ExitCode(facts), 0);
  EXPECT_EQ(
      VerdictText(facts),
      "dtrun: job 'quickstart' succeeded, but its ranks did not join each other: 2 ranks, 3.3 s, logs in "
      "/runs/1\n"
      "  next: set job.pmi = \"pmix\"\n");
}

TEST(Verdict, SaysSuccessInOneLine) {
  const Facts facts = RunOf({Rank(0, kOk, milliseconds(3200)), Rank(1, kOk, milliseconds(3100))}, -1);
  EXPECT_EQ(ExitCode(facts), 0);
  EXPECT_EQ(VerdictText(facts), "dtrun: job 'quickstart' succeeded: 2 ranks, 3.3 s, logs in /runs/1\n");
}

TEST(Verdict, SaysThatRanksWorkedAlone) {
  Facts facts = RunOf({Rank(0, kOk, milliseconds(3200)), Rank(1, kOk, milliseconds(3100))}, -1);
  facts.isolated_ranks = {"the ranks have not joined each other: each has PyTorch",
                          "call init_process_group"};
  EXPECT_EQ(ExitCode(facts), 1);
  EXPECT_EQ(
      VerdictText(facts),
      "dtrun: job 'quickstart' failed after 3.3 s: the ranks have not joined each other: each has PyTorch\n"
      "  before it: ranks 0, 1 had exited with code 0\n"
      "  next: call init_process_group\n"
      "  class: isolated-ranks\n"
      "  logs: /runs/1\n");
  EXPECT_EQ(ParseJson(VerdictJson({facts}))["exit_class"], "isolated-ranks");
}

TEST(Verdict, NamesAPmixServerThatDied) {
  Facts facts = RunOf({Rank(0, kOk, milliseconds(100)), Rank(1, kTerm, milliseconds(3250), SIGTERM),
                       Rank(2, {1, 0, false}, milliseconds(3205))},
                      -1);
  facts.mpi_server_loss = MpiServerLoss{"node1", "died of signal 11 (SIGSEGV)", {1, 2}, milliseconds(3200)};
  EXPECT_EQ(ExitCode(facts), 1);
  const std::string text = VerdictText(facts);
  EXPECT_TRUE(
      text.starts_with("dtrun: job 'quickstart' failed after 3.2 s: the PMIx server of host node1 died of "
                       "signal 11 (SIGSEGV), and ranks 1, 2 still needed it"))
      << text;
  EXPECT_NE(text.find("  before it: rank 0 had exited with code 0\n"), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("  also failed: rank 2 exited with code 1, 5 ms later\n"
                              "  because of it: rank 1 was stopped by dtrun\n"));
  EXPECT_NE(text.find("class: launcher"), std::string::npos) << text;
  EXPECT_EQ(ParseJson(VerdictJson({facts}))["result"], "failed");
}

TEST(Verdict, RanksThatFailedAlikeAreNoConsequence) {
  Facts facts = RunOf({Rank(0, {1, 0, false}, milliseconds(3205)), Rank(1, {1, 0, false}, milliseconds(3200)),
                       Rank(2, kTerm, milliseconds(3250), SIGTERM)},
                      1);
  facts.ranks[0].tail = facts.ranks[1].tail = {"Traceback (most recent call last):", "ValueError: batch 128"};
  EXPECT_THAT(VerdictText(facts),
              AllOf(HasSubstr("  ranks 0, 1 failed the same way: ValueError: batch 128\n"),
                    HasSubstr("  because of it: rank 2 was stopped by dtrun\n")));
}

TEST(Verdict, RanksThatEndedInTheSameLineFailedAlike) {
  Facts facts = RunOf({Rank(0, {2, 0, false}, milliseconds(3205)), Rank(1, {2, 0, false}, milliseconds(3200)),
                       Rank(2, kTerm, milliseconds(3250), SIGTERM)},
                      1);
  for (RankFacts& rank : facts.ranks) rank.tail = {"train: no option --bacth (pid 4242)", ""};
  EXPECT_THAT(VerdictText(facts), AllOf(HasSubstr("  ranks 0, 1 failed the same way\n"),
                                        HasSubstr("  because of it: rank 2 was stopped by dtrun\n")));
  facts.ranks[0].ending->code = 3;
  EXPECT_THAT(VerdictText(facts), HasSubstr("  also failed: rank 0 exited with code 3"));
}

TEST(Verdict, SaysThatTheJobIsStartedAgain) {
  Facts facts = RunOf({Rank(0, {1, 0, false}, milliseconds(160))}, 0);
  facts.restarts = true;
  EXPECT_THAT(VerdictText(facts), HasSubstr("' failed after 0.16 s and is started again: rank 0 exited"));
}

TEST(Verdict, SaysWhichLaunchersSetRank) {
  Facts facts = RunOf({Rank(0, {1, 0, false}, milliseconds(160))}, 0);
  facts.ranks[0].count = 2;
  facts.ranks[0].tail = {"Traceback (most recent call last):", "KeyError: 'RANK'"};
  EXPECT_THAT(VerdictText(facts), HasSubstr("  next: RANK is set where each rank has a process"));
}

TEST(Verdict, NamesTheClassOfAFaultOfTheProgramWhereRestartsDependOnIt) {
  Facts facts = RunOf({Rank(0, {1, 0, false}, milliseconds(160))}, 0);
  EXPECT_THAT(VerdictText(facts), HasSubstr("  class: user-error\n"));
  facts.names_class = false;
  EXPECT_THAT(VerdictText(facts), Not(HasSubstr("class: ")));
  facts = RunOf({Rank(0, kKill, milliseconds(160))}, 0);
  facts.names_class = false;
  EXPECT_THAT(VerdictText(facts), HasSubstr("  class: signal\n"));
}

TEST(Verdict, SaysWhereTheOutputIsKept) {
  Facts facts = RunOf({Rank(0, {1, 0, false}, milliseconds(160))}, 0);
  facts.ranks[0].tail = {"x"};
  EXPECT_THAT(VerdictText(facts), HasSubstr("  last output of rank 0 (it is not kept in a file):\n"));
  facts.ranks[0].log_files = {"/tmp/run/attempt_0/0/stderr.log", "/tmp/run/attempt_0/0/stdout.log"};
  EXPECT_THAT(VerdictText(facts),
              HasSubstr("(all of it: /tmp/run/attempt_0/0/stderr.log, /tmp/run/attempt_0/0/stdout.log):\n"));
}

TEST(Verdict, TellsTheWholeStoryOfAFailure) {
  Facts facts = RunOf({Rank(0, {1, 0, false}, milliseconds(3210)), Rank(1, kKill, milliseconds(3200))}, 1);
  for (int i = 2; i < 6; ++i) facts.ranks.push_back(Rank(i, kTerm, milliseconds(3250), SIGTERM));
  facts.ranks[0].joined = facts.ranks[1].joined = true;
  facts.ranks[1].tail = {"epoch 1", "epoch 2"};
  facts.ranks[1].log_files = {"/runs/1/rank-1.err", "/runs/1/rank-1.out"};
  EXPECT_EQ(ExitCode(facts), 137);
  EXPECT_EQ(VerdictText(facts),
            "dtrun: job 'quickstart' failed after 3.2 s: rank 1 was killed by signal 9 (SIGKILL)\n"
            "  host localhost, pid 4243, after it had called dtrun_init\n"
            "  last output of rank 1 (all of it: /runs/1/rank-1.*):\n"
            "    | epoch 1\n"
            "    | epoch 2\n"
            "  also failed: rank 0 exited with code 1, 0.01 s later\n"
            "  because of it: ranks 2-5 were stopped by dtrun\n"
            "  next: dtrun did not send this signal: look in `dmesg` for the out-of-memory killer, or find "
            "out what did\n"
            "  class: signal\n"
            "  logs: /runs/1\n");
}

TEST(Verdict, NamesARankThatLeftMpiWithoutTheOthers) {
  Facts facts = RunOf({Rank(0, kTerm, milliseconds(20), SIGTERM), Rank(1, kOk, milliseconds(10))}, 1);
  facts.ranks[1].ending->early_exit = process::EarlyExit::kBeforeInit;
  EXPECT_EQ(ExitCode(facts), 1);
  EXPECT_THAT(VerdictText(facts),
              HasSubstr("rank 1 exited with code 0 without MPI_Init, which others have called\n"));
  facts.ranks[1].ending->early_exit = process::EarlyExit::kBeforeFinalize;
  EXPECT_THAT(VerdictText(facts),
              HasSubstr("rank 1 exited with code 0 after MPI_Init and without MPI_Finalize\n"));
}

TEST(Verdict, NamesAnMpiAbortHoweverTheRankEnded) {
  Facts facts =
      RunOf({Rank(0, kTerm, milliseconds(20), SIGTERM), Rank(1, kTerm, milliseconds(20), SIGTERM)}, 1);
  facts.ranks[1].abort = MpiAbort{7, "enough"};
  EXPECT_EQ(ExitCode(facts), 7);
  EXPECT_THAT(VerdictText(facts), HasSubstr("rank 1 called MPI_Abort with code 7: enough\n"));
  EXPECT_EQ(ParseJson(VerdictJson({facts}))["ranks"][1]["mpi_abort"], 7);
  facts.ranks[1].abort = MpiAbort{256, ""};
  facts.ranks[1].ending.reset();
  EXPECT_EQ(ExitCode(facts), 1);
  EXPECT_THAT(VerdictText(facts), HasSubstr("rank 1 called MPI_Abort with code 256\n"));
}

TEST(Verdict, NamesTheErrorForWhichAnMpiLibraryCalledAbort) {
  Facts facts =
      RunOf({Rank(0, kTerm, milliseconds(20), SIGTERM), Rank(1, kTerm, milliseconds(20), SIGTERM)}, 1);
  facts.ranks[1].abort = MpiAbort{15, ""};
  facts.ranks[1].tail = {
      "[node0:9] *** An error occurred in MPI_Recv", "[node0:9] *** on communicator W",
      "[node0:9] *** MPI_ERR_TRUNCATE: message truncated",
      "[node0:9] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,"};
  ASSERT_TRUE(Recognise(&facts));
  EXPECT_THAT(VerdictText(facts),
              HasSubstr("rank 1 called MPI_Abort with code 15: MPI_Recv got a longer message than its buffer "
                        "holds (MPI_ERR_TRUNCATE)\n"));
}

TEST(Verdict, DistinguishesWhereInItsLifeARankFailed) {
  Facts facts =
      RunOf({Rank(0, {3, 0, false}, milliseconds(10)), Rank(1, kTerm, milliseconds(20), SIGTERM)}, 0);
  EXPECT_THAT(VerdictText(facts), Not(HasSubstr("dtrun_init")));  // no evidence that this job uses dtrun
  facts.ranks[1].joined = true;
  EXPECT_THAT(VerdictText(facts), HasSubstr("pid 4242, before dtrun_init"));
  facts.ranks[0].joined = true;
  EXPECT_THAT(VerdictText(facts), HasSubstr("after it had called dtrun_init"));
  facts.ranks[0].left = true;
  EXPECT_THAT(VerdictText(facts), HasSubstr(", after dtrun_finalize"));
}

TEST(Verdict, KeepsRanksThatHadEndedWellApart) {
  const Facts facts = RunOf({Rank(0, kOk, milliseconds(5)), Rank(1, {3, 0, false}, milliseconds(10)),
                             Rank(2, kOk, milliseconds(6)), Rank(3, kOk, milliseconds(30), SIGTERM)},
                            1);
  EXPECT_THAT(VerdictText(facts),
              AllOf(HasSubstr("before it: ranks 0, 2 had exited with code 0\n"),
                    HasSubstr("meanwhile: rank 3 exited with code 0 while dtrun was ending the job\n")));
}

TEST(Verdict, TellsAReportOnce) {
  Facts facts =
      RunOf({Rank(0, {1, 0, false}, milliseconds(20)), Rank(1, {3, 0, false}, milliseconds(10))}, 1);
  facts.ranks[0].reports = {{1, "connection to rank 1 was closed"},
                            {1, "allreduce #16: connection to rank 1 was closed; rank 1 is in #16"},
                            {1, "no answer"}};
  EXPECT_THAT(VerdictText(facts),
              AllOf(HasSubstr("rank 0 reported: allreduce #16: connection to rank 1 was closed"),
                    HasSubstr("rank 0 reported: no answer"), Not(HasSubstr("of it: connection to rank 1"))));
}

TEST(Verdict, DoesNotRepeatWhatTheRankPrinted) {
  Facts facts =
      RunOf({Rank(0, {1, 0, false}, milliseconds(10)), Rank(1, kTerm, milliseconds(20), SIGTERM)}, 0);
  const std::string text = "allreduce 1 timed out after 3 s waiting for rank 1";
  facts.ranks[0].tail = {"allreduce: " + text + "; rank 1 has called no collective yet"};
  facts.ranks[0].reports = {{1, text}};
  facts.ranks[1].reports = {{0, "rank 0 gave up: " + text}};
  EXPECT_THAT(VerdictText(facts), Not(HasSubstr("reported: ")));
}

TEST(Verdict, DoesNotTakeASuccessForAConsequence) {
  const Facts facts = RunOf({Rank(0, kOk, milliseconds(10)), Rank(1, {3, 0, false}, milliseconds(10))}, 1);
  EXPECT_THAT(VerdictText(facts),
              AllOf(HasSubstr("  unrelated: rank 0 exited with code 0\n"), Not(HasSubstr("because of it"))));
}

TEST(Verdict, DoesNotCallUnrelatedWhomItBlames) {
  Facts facts = RunOf({Rank(0, {1, 0, false}, milliseconds(10)), Rank(1, kOk, milliseconds(12)),
                       Rank(2, kOk, milliseconds(12), SIGTERM)},
                      0);
  for (RankFacts& rank : facts.ranks) rank.joined = true;
  facts.ranks[0].tail = {"dtrun.errors.RemoteFailure: allreduce: rank 1 left the communicator"};
  facts.ranks[0].reports = {{1, "rank 1 left the communicator"}};
  EXPECT_THAT(VerdictText(facts), AllOf(HasSubstr("rank 1 exited with code 0 while others still needed it"),
                                        Not(HasSubstr("unrelated"))));
}

TEST(Verdict, TellsChangesOfHostsFromRestarts) {
  Facts facts = RunOf({Rank(0, kOk, milliseconds(10))}, -1);
  facts.generation = 3;
  facts.regroups = 2;
  facts.elapsed = milliseconds(9900);
  EXPECT_THAT(VerdictText(facts), HasSubstr("9.9 s, after 1 restart, and 2 changes of hosts, logs in"));
  facts.generation = 2;
  EXPECT_THAT(VerdictText(facts), HasSubstr("9.9 s, after 2 changes of hosts, logs in"));
}

TEST(Verdict, FoldsRanksThatEndedAlike) {
  const Facts facts = RunOf(
      {Rank(0, {1, 0, false}, milliseconds(120)), Rank(1, {3, 0, false}, milliseconds(100)),
       Rank(2, {1, 0, false}, milliseconds(350)), Rank(3, {0, SIGSEGV, false}, milliseconds(110), SIGTERM),
       Rank(4, {0, SIGSEGV, false}, milliseconds(110), SIGTERM)},
      1);
  EXPECT_THAT(VerdictText(facts),
              HasSubstr("  also failed: ranks 0, 2 exited with code 1 within 0.25 s\n"
                        "  because of it: ranks 3, 4 were killed by signal 11 (SIGSEGV) within 0.01 s\n"));
}

TEST(Verdict, ARankThatBlamesAnotherFailedBecauseOfIt) {
  Facts facts =
      RunOf({Rank(0, {3, 0, false}, milliseconds(100)), Rank(1, {1, 0, false}, milliseconds(120))}, 0);
  EXPECT_THAT(VerdictText(facts), HasSubstr("  also failed: rank 1 exited with code 1, 0.02 s later\n"));
  facts.ranks[1].reports = {{0, "connection to rank 0 was closed"}};
  EXPECT_THAT(VerdictText(facts), HasSubstr("  because of it: rank 1 exited with code 1, 0.02 s later\n"));
}

TEST(Verdict, ARankThatFailedLikeTheFirstDidSoByItself) {
  Facts facts = RunOf({Rank(0, {0, SIGSEGV, false}, milliseconds(100)),
                       Rank(1, {0, SIGSEGV, false}, milliseconds(101), SIGTERM)},
                      0);
  EXPECT_THAT(VerdictText(facts), HasSubstr("  also failed: rank 1 was killed by signal 11 (SIGSEGV)"));
  facts.ranks[0].ending = facts.ranks[1].ending = kTerm;
  EXPECT_THAT(VerdictText(facts), HasSubstr("  because of it: rank 1 was stopped by dtrun\n"));
}

TEST(Verdict, NamesAllRanksOfAProcess) {
  Facts facts =
      RunOf({Rank(0, kTerm, milliseconds(20), SIGTERM), Rank(2, {7, 0, false}, milliseconds(10))}, 1);
  facts.ranks[0].count = facts.ranks[1].count = 2;
  EXPECT_THAT(VerdictText(facts), AllOf(HasSubstr("the process of ranks 2, 3 exited with code 7\n"),
                                        HasSubstr("the process of ranks 2, 3 printed nothing"),
                                        HasSubstr("because of it: ranks 0, 1 were stopped by dtrun")));
  facts.ranks[0].ending = facts.ranks[1].ending = kOk;
  facts.first_failed = -1;
  EXPECT_THAT(VerdictText(facts), HasSubstr("succeeded: 4 ranks"));
}

TEST(Verdict, SaysWhichRanksHadToBeKilled) {
  Facts facts = RunOf({Rank(0, {3, 0, false}, milliseconds(10)), Rank(1, kKill, milliseconds(900), SIGKILL),
                       Rank(2, kKill, milliseconds(900), 0), Rank(3, kOk, milliseconds(900))},
                      0);
  facts.ranks[3].ending.reset();
  EXPECT_THAT(VerdictText(facts), AllOf(HasSubstr("rank 1 did not stop in time and was killed by dtrun"),
                                        HasSubstr("rank 2 was killed by signal 9 (SIGKILL), 0.89 s later"),
                                        HasSubstr("rank 3 had not ended 10 s after SIGKILL")));
}

TEST(Verdict, QuotesWhatRanksReportedOfTheFailedOne) {
  Facts facts =
      RunOf({Rank(0, {1, 0, false}, milliseconds(20)), Rank(1, {3, 0, false}, milliseconds(10))}, 1);
  facts.ranks[0].reports = {{1, "rank 1 closed the connection"}, {5, "something else"}};
  facts.ranks[1].reports = {{-1, "no room for the bucket"}};
  EXPECT_THAT(VerdictText(facts),
              AllOf(HasSubstr("rank 0 reported: rank 1 closed the connection"),
                    HasSubstr("it reported: no room for the bucket"), Not(HasSubstr("something else"))));
}

TEST(Verdict, QuotesAnExceptionThatNoCodeCaught) {
  Facts facts = RunOf({Rank(0, {0, SIGABRT, false}, milliseconds(1))}, 0);
  EXPECT_THAT(VerdictText(facts), HasSubstr("next: run again after `ulimit -c unlimited`"));
  facts.ranks[0].tail = {"terminate called after throwing an instance of 'std::runtime_error'",
                         "  what():  my own bug"};
  for (int i = 0; i < 12; ++i)
    facts.ranks[0].tail.push_back("[ 1] /lib/x86_64-linux-gnu/libc.so.6(+0x8aeec)[0x7f41c56a8eec]");
  EXPECT_THAT(VerdictText(facts),
              AllOf(HasSubstr("my own bug"), HasSubstr("next: no code caught this C++ exception")));
}

TEST(Verdict, HintsAtWhatUsuallyStandsBehind) {
  auto hint = [](process::Ending ending) {
    return VerdictText(RunOf({Rank(0, ending, milliseconds(1))}, 0));
  };
  EXPECT_THAT(hint({127, 0, false}),
              HasSubstr("next: 127 is a shell's code for a command or script that was not found"));
  EXPECT_THAT(hint({126, 0, false}), HasSubstr("not executable"));
  EXPECT_THAT(hint({139, 0, false}), HasSubstr("killed by SIGSEGV"));
  EXPECT_THAT(hint({0, SIGSEGV, false}), HasSubstr("ulimit -c unlimited"));
  EXPECT_THAT(hint({0, SIGABRT, true}), AllOf(HasSubstr("core dumped"), HasSubstr("coredumpctl")));
  EXPECT_THAT(hint({0, SIGBUS, false}), HasSubstr("/dev/shm"));
  EXPECT_THAT(hint({0, SIGILL, false}), HasSubstr("another processor"));
  EXPECT_THAT(hint({0, SIGTERM, false}), HasSubstr("dtrun did not send SIGTERM"));
  EXPECT_THAT(hint({.signal = SIGUSR1, .forwarded = true}), HasSubstr("dtrun was sent SIGUSR1"));
  EXPECT_THAT(hint({1, 0, false}), Not(HasSubstr("next:")));
}

TEST(Verdict, NamesARankThatStoodStill) {
  const Facts facts = RunOf({Rank(0, {3, 0, false}, milliseconds(2000)),
                             Rank(1, {0, SIGTERM, false, false, SIGSTOP}, milliseconds(2010), SIGTERM)},
                            0);
  EXPECT_EQ(ExitCode(facts), 3);  // no report of a wait
  EXPECT_THAT(VerdictText(facts), HasSubstr("because of it: rank 1 was stopped by signal 19 (SIGSTOP)"));
}

TEST(Verdict, SaysWhenTheKernelWasOutOfMemory) {
  Facts facts = RunOf({Rank(0, {0, SIGKILL, false, true}, milliseconds(10))}, 0);
  EXPECT_THAT(VerdictText(facts),
              AllOf(HasSubstr("rank 0 was killed by the kernel, which was out of memory"),
                    HasSubstr("class: out-of-memory"), HasSubstr("fewer ranks per host")));
}

}  // namespace
}  // namespace dtrun::verdict
