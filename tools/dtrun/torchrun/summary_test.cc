#include "tools/dtrun/torchrun/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "core/output/testing.h"

namespace dtrun::torchrun {
namespace {

using ::testing::HasSubstr;

constexpr char kVerdict[] = R"({"result": "failed", "first_failed_rank": 1, "ranks": [
  {"rank": 0, "host": "here", "pid": 10, "ending": {"code": null, "signal": "SIGTERM", "at_seconds": 2.5}},
  {"rank": 1, "host": "here", "pid": 11, "ending": {"code": 7, "signal": null, "at_seconds": 1.5}},
  {"rank": 2, "host": "here", "pid": 12, "ending": {"code": 0, "signal": null, "at_seconds": 1.0}},
  {"rank": 3, "host": "here", "pid": 13, "ending": null}]})";

Failures Read(const std::map<int, std::string>& error_files = {}) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const auto failures = ReadFailures(kVerdict, 1'000'000'000, {{0, 0}, {1, 1}}, error_files);
  EXPECT_TRUE(failures.ok()) << failures.error().text;
  return failures.ok() && *failures ? **failures : Failures{};
}

// The layout, blanks at the ends of lines included, is what torch 2.13 prints.
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

// dtrun has ended it, too, but that is not why it is blamed.
TEST(Summary, SaysWhyARankIsBlamedThatWasStopped) {
  const auto failures = ReadFailures(R"({"first_failed_rank": 1,
    "blamed": {"ranks": [1], "why": "stood still", "seen_first": 0}, "ranks": [
    {"rank": 0, "host": "here", "pid": 10, "stopped_with": null, "place": null,
     "ending": {"code": 1, "signal": null, "stopped_by": null, "at_seconds": 2.5}},
    {"rank": 1, "host": "here", "pid": 11, "stopped_with": "SIGTERM", "place": "in time.sleep at train.py:40",
     "ending": {"code": null, "signal": "SIGTERM", "stopped_by": null, "at_seconds": 3.5}}]})",
                                     0, {{0, 0}, {1, 1}}, {});
  ASSERT_TRUE(failures.ok() && *failures);
  EXPECT_THAT(
      Summary("x", **failures),
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

// Writing a text of either recurses as deep as it is nested.
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
  const auto failures = ReadFailures(R"({"first_failed_rank": null, "ranks": []})", 0, {}, {});
  ASSERT_TRUE(failures.ok());
  EXPECT_FALSE(failures->has_value());
}

TEST(Summary, SaysWhatIsWrongWithAVerdict) {
  for (const char* verdict : {"", "{}", R"({"first_failed_rank": 0, "ranks": [{}]})"}) {
    const auto failures = ReadFailures(verdict, 0, {}, {});
    ASSERT_FALSE(failures.ok()) << verdict;
    EXPECT_THAT(failures.error().text, HasSubstr("cannot read the verdict"));
  }
}

}  // namespace
}  // namespace dtrun::torchrun
