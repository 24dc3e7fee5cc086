#include "core/verdict/recognise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/base/json.h"
#include "core/process/testing.h"
#include "core/verdict/cause.h"
#include "core/verdict/verdict.h"

namespace dtrun::verdict {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RecogniseTest : public ::testing::Test {
 protected:
  RecogniseTest() {
    facts_.job = "train";
    facts_.logs = dir_.path();
    facts_.first_failed = 0;
    RankFacts rank;
    rank.ending = process::Ending{1, 0, false};
    facts_.ranks.push_back(rank);
  }

  void Log(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
    facts_.ranks[0].log_files.emplace_back(dir_ / name);
  }

  process::testing::ScratchDir dir_;
  Facts facts_;
};

TEST_F(RecogniseTest, TheVerdictNamesCauseAndFix) {
  Log("rank-0.err", "Traceback\nLast error:\nBootstrap : no socket interface found\n");
  ASSERT_TRUE(Recognise(&facts_).ok());
  const std::string verdict = VerdictText(facts_);
  EXPECT_THAT(verdict, HasSubstr("  known failure: NCCL found no network interface that it may use "
                                 "(nccl-no-interface; rank-0.err, line 3)\n"
                                 "    | Bootstrap : no socket interface found\n"));
  EXPECT_THAT(verdict, HasSubstr("  next: correct NCCL_SOCKET_IFNAME"));
  const auto json = ParseJson(VerdictJson({facts_}));
  EXPECT_EQ(json["ranks"][0]["known_failure"]["id"], "nccl-no-interface");
  EXPECT_EQ(json["ranks"][0]["known_failure"]["file"], dir_ / "rank-0.err");
}

TEST_F(RecogniseTest, WithoutFilesLooksAtTheLastLines) {
  facts_.ranks[0].tail = {"step 1", "OSError: [Errno 28] No space left on device"};
  ASSERT_TRUE(Recognise(&facts_).ok());
  EXPECT_THAT(VerdictText(facts_), HasSubstr("known failure: a disk, or /dev/shm, is full (disk-full)\n"));
}

TEST_F(RecogniseTest, WhatWasPrintedBeforeAnErrorOfTheProgramIsNotItsCause) {
  const std::vector<std::string> lines = {
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB; a smaller batch",
      "Traceback (most recent call last):", "  File \"train.py\", line 9, in <module>",
      "ValueError: bad label 17"};
  facts_.ranks[0].tail = lines;
  std::string log;
  for (const std::string& line : lines) log += line + "\n";
  Log("rank-0.err", log);
  ASSERT_TRUE(Recognise(&facts_).ok());
  EXPECT_THAT(VerdictText(facts_), Not(HasSubstr("known failure")));
  EXPECT_THAT(VerdictText(facts_), HasSubstr("class: user-error\n"));
  facts_.ranks[0].tail.back() = "RuntimeError: CUDA error";  // the known failure can have caused it
  ASSERT_TRUE(Recognise(&facts_).ok());
  EXPECT_THAT(VerdictText(facts_), HasSubstr("class: out-of-memory\n"));
}

TEST_F(RecogniseTest, TheOutputMayTellTheClass) {
  Log("rank-0.err", "RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.12]:55116\n");
  ASSERT_TRUE(Recognise(&facts_).ok());
  EXPECT_EQ(FindCause(facts_).exit_class, ExitClass::kNetwork);
  facts_.ranks[0].ending = process::Ending{0, SIGSEGV, false};
  EXPECT_EQ(FindCause(facts_).exit_class, ExitClass::kSignal);
}

TEST_F(RecogniseTest, WhatIsLongPastIsNotTheFailure) {
  std::string log = "RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.12]:55116\n";
  for (int i = 0; i < 1000; ++i) log += "a step\n";
  Log("rank-0.err", log);
  ASSERT_TRUE(Recognise(&facts_).ok());
  EXPECT_EQ(FindCause(facts_).exit_class, ExitClass::kUserError);
  EXPECT_THAT(VerdictText(facts_), HasSubstr("  seen long before: a peer at 10.0.0.12 ended"));
}

TEST_F(RecogniseTest, WhatACrashedRankSaidLongBeforeIsNotItsCause) {
  Log("rank-0.out", "Bootstrap : no socket interface found\nstep 1\nstep 2\n");
  facts_.ranks[0].ending = process::Ending{0, SIGSEGV, false};
  facts_.ranks[0].tail = {"step 1", "step 2"};
  ASSERT_TRUE(Recognise(&facts_).ok());
  EXPECT_THAT(VerdictText(facts_), AllOf(Not(HasSubstr("known failure")), HasSubstr("open the core file")));
  facts_.ranks[0].tail.insert(facts_.ranks[0].tail.begin(), "Bootstrap : no socket interface found");
  ASSERT_TRUE(Recognise(&facts_).ok());
  EXPECT_THAT(VerdictText(facts_), HasSubstr("known failure"));
}

TEST_F(RecogniseTest, ARankKilledFromOutsideDoesNotKnowWhy) {
  Log("rank-0.err", "Bootstrap : no socket interface found\n");
  facts_.ranks[0].ending = process::Ending{0, SIGKILL, false};
  ASSERT_TRUE(Recognise(&facts_).ok());
  EXPECT_THAT(VerdictText(facts_), Not(HasSubstr("known failure")));
}

TEST_F(RecogniseTest, ALogThatIsGoneIsReported) {
  facts_.ranks[0].log_files.emplace_back(dir_ / "rank-0.err");
  const Status looked = Recognise(&facts_);
  ASSERT_FALSE(looked.ok());
  EXPECT_THAT(looked.error().text, HasSubstr("rank-0.err"));
  EXPECT_THAT(VerdictText(facts_), HasSubstr("exited with code 1"));
}

TEST_F(RecogniseTest, WhatTheLogLacksIsInTheLastLines) {
  const std::string line = "RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.12]:55116";
  facts_.ranks[0].tail = {line};
  facts_.ranks.emplace_back(facts_.ranks[0]).rank = 1;
  facts_.ranks[1].ending = process::Ending{0, 0, false, false, SIGSTOP};
  EXPECT_EQ(ExitCode(facts_), 1);
  Log("rank-0.err", "OSError: [Errno 28] No space left on device\n");  // of a disk that was full after it
  facts_.ranks[0].log_cut = true;
  ASSERT_TRUE(Recognise(&facts_).ok());
  EXPECT_EQ(ExitCode(facts_), 128 + SIGSTOP);
  std::filesystem::remove(dir_ / "rank-0.err");  // with the run's folder
  facts_.ranks[0].log_cut = false;
  facts_.ranks[0].known.reset();
  EXPECT_FALSE(Recognise(&facts_).ok());
  EXPECT_EQ(ExitCode(facts_), 128 + SIGSTOP);
  EXPECT_EQ(FindCause(facts_).index, 1u);
}

}  // namespace
}  // namespace dtrun::verdict
