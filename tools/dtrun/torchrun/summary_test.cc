#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "core/output/testing.h"
#include "core/verdict/recognise.h"
#include "tools/dtrun/torchrun/front.h"

namespace dtrun::torchrun {
namespace {

using ::testing::HasSubstr;

verdict::RankFacts RankOf(int rank, std::optional<process::Ending> ending, int ended_after_ms) {
  verdict::RankFacts facts;
  facts.rank = rank;
  facts.host = "here";
  facts.pid = 10 + rank;
  facts.ending = ending;
  facts.ended_at = std::chrono::milliseconds(ended_after_ms);
  return facts;
}

// Rank 1 failed first; dtrun ended rank 0.
verdict::Facts Failed() {
  verdict::Facts facts;
  facts.ranks = {RankOf(0, process::Ending{0, SIGTERM}, 2500), RankOf(1, process::Ending{7}, 1500),
                 RankOf(2, process::Ending{}, 1000), RankOf(3, {}, 0)};
  facts.ranks[0].signal_sent = SIGTERM;
  facts.first_failed = 1;
  return facts;
}

Failures Read(const std::map<int, std::string>& error_files = {}) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const auto failures = FailuresOf(Failed(), 1'000'000'000, {{0, 0}, {1, 1}}, error_files);
  EXPECT_TRUE(failures);
  return failures.value_or(Failures{});
}

// The layout, including trailing spaces, matches torch 2.13.
TEST(Summary, LooksLikeTorchruns) {
  EXPECT_EQ(Summary("train.py", Read()), R"(============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[0]:
  time      : 2001-09-09_01:46:42
  host      : here
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 10)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 10
------------------------------------------------------------
Root Cause (first observed failure):
[1]:
  time      : 2001-09-09_01:46:41
  host      : here
  rank      : 1 (local_rank: 1)
  exitcode  : 7 (pid: 11) 
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
)");
}

// dtrun also ended it, but that is not why it is blamed.
TEST(Summary, SaysWhyARankIsBlamedThatWasStopped) {
  verdict::Facts facts;
  facts.ranks = {RankOf(0, process::Ending{1}, 2500), RankOf(1, process::Ending{0, SIGTERM}, 3500),
                 RankOf(2, process::Ending{0, SIGTERM}, 3500)};
  for (int rank : {1, 2}) {
    verdict::RankFacts& stopped = facts.ranks[static_cast<std::size_t>(rank)];
    stopped.signal_sent = SIGTERM;
    stopped.doing = verdict::RankDoing();
    stopped.doing->rank = rank;
  }
  facts.ranks[0].tail = {
      "Traceback (most recent call last):", "  File \"train.py\", line 6, in <module>",
      "    dist.all_reduce(t)",
      "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 20000ms "
      "for recv operation to complete"};
  facts.ranks[1].doing->stand = stacks::Stand::kElsewhere;
  facts.ranks[1].doing->phrase = "in time.sleep at train.py:40";
  facts.ranks[2].doing->stand = stacks::Stand::kWaits;
  facts.ranks[2].doing->phrase = "in all_reduce at train.py:42";
  facts.first_failed = 0;
  ASSERT_TRUE(verdict::Recognise(&facts));
  const auto failures = FailuresOf(facts, 0, {{0, 0}, {1, 1}}, {});
  ASSERT_TRUE(failures);
  EXPECT_THAT(
      Summary("x", *failures),
      HasSubstr("traceback : rank 1 stood still, in time.sleep at train.py:40; dtrun ended it by SIGTERM "
                "once rank 0 had failed\n"));
}

TEST(Summary, ShowsWhatTheRankHasWrittenAndHandsItOnWithItsExitCode) {
  const output::TempFolder folder;
  const std::string file = folder.path() / "error.json";
  std::ofstream(file) << R"({"message": {"message": "ValueError: bad", "extraInfo": {
      "py_callstack": "Traceback:\n  at x", "timestamp": "1000000100"}}})";
  const Failures failures = Read({{1, file}, {0, folder.path() / "absent.json"}});
  const std::string text = Summary("train.py", failures);
  EXPECT_THAT(text, HasSubstr("error_file: " + file));
  EXPECT_THAT(text, HasSubstr("traceback : Traceback:\n    at x\n"));
  EXPECT_THAT(text, HasSubstr("time      : 2001-09-09_01:48:20"));
  EXPECT_THAT(RootErrorFile(failures), HasSubstr(R"("errorCode":7)"));
}

TEST(Summary, SurvivesErrorFilesOfAnyContent) {
  const output::TempFolder folder;
  const std::string file = folder.path() / "error.json";
  const struct {
    const char* content;
    const char* shown;
  } cases[] = {{"", "To enable traceback"},
               {"[1]", "To enable traceback"},
               {R"({"message": "plain", "timestamp": 5})", "traceback : plain"},
               {R"({"message": {"message": "short"}})", "traceback : short"},
               {R"({"message": {"extraInfo": 3}})", R"(traceback : {"extraInfo":3})"}};
  for (const auto& c : cases) {
    std::ofstream(file, std::ios::trunc) << c.content;
    EXPECT_THAT(Summary("x", Read({{1, file}})), HasSubstr(c.shown)) << c.content;
  }
}

// Formatting either text recurses as deep as it is nested.
TEST(Summary, SurvivesErrorFilesThatAreNestedDeeply) {
  const output::TempFolder folder;
  const std::string file = folder.path() / "error.json";
  const std::pair<std::string, std::string> brackets[] = {{"[", "]"}, {R"({"message":)", "}"}};
  for (const auto& [open, close] : brackets) {
    std::string nested = R"({"message": 1})";
    for (int i = 0; i < 80'000; ++i) nested.insert(nested.size() - 2, open);
    for (int i = 0; i < 80'000; ++i) nested.insert(nested.size() - 1, close);
    std::ofstream(file, std::ios::trunc) << nested;
    const Failures failures = Read({{1, file}});
    EXPECT_LT(Summary("x", failures).size(), 5000u);
    EXPECT_LT(RootErrorFile(failures).size(), 5000u);
  }
}

TEST(Summary, DoesNotWaitForAnErrorFileThatIsAPipe) {
  const output::TempFolder folder;
  const std::string file = folder.path() / "error.json";
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_THAT(Summary("x", Read({{1, file}})), HasSubstr("To enable traceback"));
}

TEST(Summary, SaysThatThereIsNoOtherFailure) {
  Failures failures = Read();
  failures.all.erase(failures.all.begin());
  failures.root = 0;
  EXPECT_THAT(Summary("x", failures), HasSubstr("Failures:\n  <NO_OTHER_FAILURES>\n"));
}

TEST(Summary, IsNotMadeWhereNoRankFailedByItself) {
  EXPECT_FALSE(FailuresOf({}, 0, {}, {}));
  verdict::Facts interrupted = Failed();
  interrupted.first_failed = -1;
  interrupted.interrupt = SIGINT;
  EXPECT_FALSE(FailuresOf(interrupted, 0, {}, {}));
}

}  // namespace
}  // namespace dtrun::torchrun
