#include "core/failures/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace dtrun::failures {
namespace {

using failures::Captures;
using failures::Fill;
using failures::Read;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;

constexpr char kCause[] = "Bootstrap : no socket interface found";
constexpr char kSymptom[] = "ncclInternalError: Internal check failed.";

std::vector<std::string> Ids(std::string_view text) {
  std::vector<std::string> ids;
  for (const Finding& finding : FindFailures(text)) ids.push_back(finding.failure->id);
  return ids;
}

TEST(FindFailures, LeavesOutKeysAndSourceLines) {
  const std::string oom = "CUDA out of memory. Tried to allocate 2.00 GiB";
  EXPECT_THAT(Ids("KeyError: '" + oom + "'\n"), IsEmpty());
  for (const std::string prefix : {"", "[rank1]: ", "[1] "}) {
    const std::string frame = prefix + "  File \"/home/u/a.py\", line 3, in f\n";
    EXPECT_THAT(Ids(frame + prefix + "    raise RuntimeError(\"" + oom + "\")\n"), IsEmpty());
    EXPECT_THAT(Ids(frame + prefix + "RuntimeError: " + oom + "\n"), ElementsAre("cuda-out-of-memory"));
  }
}

TEST(Read, CapturesWhatStandsBetweenLiterals) {
  EXPECT_THAT(Read("rank {rank} of {ranks} ranks", "rank 3 of 8 ranks, again"),
              Optional(ElementsAre(Pair("rank", "3"), Pair("ranks", "8"))));
  EXPECT_THAT(Read("on {host}, {reason...}", "on node 1, no route to host\nmore"),
              Optional(ElementsAre(Pair("host", "node 1"), Pair("reason", "no route to host"))));
}

TEST(Read, EndsAWordWhereNoLiteralFollows) {
  for (const char* const text : {"for: eth0", "for: eth0.", "for: eth0, so", "for: eth0\n", "for: eth0>"}) {
    EXPECT_THAT(Read("for: {name}", text), Optional(ElementsAre(Pair("name", "eth0")))) << text;
  }
}

TEST(Read, StaysInItsLineUnlessThePatternLeavesIt) {
  EXPECT_EQ(Read("from {a} to {b};", "from x\nto y;"), std::nullopt);
  EXPECT_THAT(
      Read("failed\nhost:{host}\nerror:{why...}", "failed so\n\n  host:   n0\n  pid: 4\n  error: no (1)\n"),
      Optional(ElementsAre(Pair("host", "n0"), Pair("why", "no (1)"))));
  EXPECT_EQ(Read("failed\nhost:{host}", "failed host: n0"), std::nullopt);
}

TEST(Read, HasNoEmptyCaptures) {
  EXPECT_EQ(Read("address {address} with", "address  with family 4"), std::nullopt);
  EXPECT_EQ(Read("for: {name}", "for: "), std::nullopt);
}

TEST(Read, LeavesTheTextToItsLastBeginning) {
  EXPECT_EQ(Read("[Rank {rank}] gave up", "[Rank 2] thread ended: [Rank 2] gave up"), std::nullopt);
  EXPECT_THAT(Read("[Rank {rank}] gave up", "[Rank 2] gave up"), Optional(ElementsAre(Pair("rank", "2"))));
}

TEST(Fill, LeavesOutBracketsWhoseCaptureIsMissing) {
  EXPECT_EQ(Fill("a peer[ at {address}] ended", Captures{{"address", "10.0.0.1"}}),
            "a peer at 10.0.0.1 ended");
  EXPECT_EQ(Fill("a peer[ at {address}] ended", Captures{}), "a peer ended");
}

TEST(Finding, SaysWhereAndHowOften) {
  const auto findings =
      FindFailures("one\n" + std::string(kCause) + "\nthree\n  " + kCause + "\nfive\nsix\n");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].line_number, 4u);
  EXPECT_EQ(findings[0].lines_after, 2u);
  EXPECT_EQ(findings[0].count, 2u);
  EXPECT_EQ(findings[0].line, std::string("  ") + kCause);
}

TEST(Finding, StandInTheOrderOfTheText) {
  const std::string text = std::string(kSymptom) + "\nLast error:\n" + kCause + "\n";
  EXPECT_THAT(Ids(text), ElementsAre("nccl-internal-error", "nccl-no-interface"));
}

TEST(Finding, TheLastCauseIsForemost) {
  const std::string text = std::string(kCause) + "\nCUDA error: out of memory\n" + kSymptom + "\n";
  const auto findings = FindFailures(text);
  EXPECT_EQ(Foremost(findings)->failure->id, "cuda-out-of-memory");
  const auto symptoms = FindFailures(kSymptom);
  EXPECT_EQ(Foremost(symptoms)->failure->id, "nccl-internal-error");
  EXPECT_EQ(Foremost({}), nullptr);
}

TEST(Finding, AReportComesBehindWhatItReports) {
  const std::string report =
      "mpirun noticed that process rank 0 with PID 9 on node n1 exited on signal 6 (Aborted).";
  const std::string text = std::string(kSymptom) + "\n" + report + "\n";
  EXPECT_EQ(Foremost(FindFailures(text))->failure->id, "nccl-internal-error");
  EXPECT_EQ(Foremost(FindFailures(report))->failure->id, "mpirun-rank-crashed");
}

TEST(Finding, TheSpecialHidesTheGeneral) {
  EXPECT_THAT(Ids("x.so: undefined symbol: ncclCommSplit"), ElementsAre("nccl-symbol-missing"));
  EXPECT_THAT(Ids("x.so: undefined symbol: cblas_sgemm"), ElementsAre("symbol-missing"));
}

TEST(Finding, OfALineWithoutEndShowsThePartThatMatters) {
  const std::string text = std::string(100000, 'x') + kCause + std::string(100000, 'y');
  const auto findings = FindFailures(text);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_LE(findings[0].line.size(), 400u);
  EXPECT_THAT(findings[0].line, ::testing::HasSubstr(kCause));
}

TEST(Finding, TakesTimeLinearInTheText) {
  // Beginnings of patterns that never complete, in one endless line.
  const auto seconds = [](std::size_t times) {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += "Connection closed by peer [ : connect to ";
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(FindFailures(text).empty());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const double small = seconds(2000);
  EXPECT_LT(seconds(20000), 100 * small + 0.1);  // linear: ten times, plus noise; quadratic: a hundred
}

}  // namespace
}  // namespace dtrun::failures
