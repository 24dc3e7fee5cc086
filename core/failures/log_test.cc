#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "core/failures/finding.h"

namespace dtrun::failures {
namespace {

constexpr char kCauseLine[] = "Bootstrap : no socket interface found\n";
constexpr char kSymptomLine[] = "ncclInternalError: Internal check failed.\n";

class Logs : public ::testing::Test {
 protected:
  Logs() {
    char name[] = "/tmp/dtrun-logs-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~Logs() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  std::filesystem::path folder_;
};

std::string Lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "step " + std::to_string(i) + "\n";
  return text;
}

TEST_F(Logs, ACauseInOneFileComesBeforeASymptomInAnother) {
  const auto out = Write("rank-0.out", Lines(5000) + kCauseLine + Lines(10));
  const auto found = FindInLogs({Write("rank-0.err", kSymptomLine), out}, LogSource::kRunLog);
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->finding.failure->id, "nccl-no-interface");
  EXPECT_EQ((*found)->file, out);
  EXPECT_EQ((*found)->finding.line_number, 5001u);
  EXPECT_TRUE((*found)->recent);
}

TEST_F(Logs, WhatIsLongPastComesLast) {
  const auto out = Write("rank-0.out", kCauseLine + Lines(5000));
  const auto found = FindInLogs({Write("rank-0.err", kSymptomLine), out}, LogSource::kRunLog);
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->finding.failure->id, "nccl-internal-error");
  const auto old = FindInLogs({out}, LogSource::kRunLog);
  ASSERT_TRUE(old.ok() && *old);
  EXPECT_FALSE((*old)->recent);
}

TEST_F(Logs, OfALongLogTheEndIsRead) {
  const auto file = Write("rank-0.out", Lines(1000) + kCauseLine);
  const auto findings = FindFailuresIn(file, 500);
  ASSERT_TRUE(findings.ok());
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_EQ(findings->front().line_number, 0u);
  EXPECT_EQ(FindFailuresIn(file, 10)->size(), 0u);
}

TEST_F(Logs, AFileThatCannotBeReadIsAnErrorThatNamesIt) {
  const auto missing = FindInLogs({folder_ / "none"}, LogSource::kRunLog);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().text, ::testing::HasSubstr("none': no such file"));
  EXPECT_FALSE(FindFailuresIn(folder_).ok());
}

TEST_F(Logs, AdviceNamesTheRecordedCallsWhereThereAreSome) {
  const auto err = Write("rank-0.err", "op.preamble.length <= op.nbytes. 32 vs 16\n");
  EXPECT_THAT(FindFailuresIn(err)->at(0).fix, ::testing::Not(::testing::HasSubstr("calls.txt")));
  const auto calls = Write("calls.txt", "rank 0\n");
  EXPECT_THAT(FindFailuresIn(err)->at(0).fix, ::testing::HasSubstr(calls.string()));
}

TEST_F(Logs, NothingKnownIsNoError) {
  const auto found =
      FindInLogs({Write("rank-0.err", Lines(10)), Write("rank-0.out", "")}, LogSource::kRunLog);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
}

TEST_F(Logs, NameTheInterpreterThatLacksAModule) {
  const auto log = Write("rank-0.err", "ModuleNotFoundError: No module named 'yaml'\n");
  const auto of = [&](const char* program) {
    return (*FindInLogs({log}, LogSource::kRunLog, FactsOf(program)))->finding;
  };
  EXPECT_EQ(of("/opt/venv/bin/python3").what,
            "Python has no module yaml on this host; the interpreter is /opt/venv/bin/python3");
  EXPECT_THAT(of("/opt/venv/bin/python3").fix,
              ::testing::HasSubstr("`/opt/venv/bin/python3 -m pip install yaml`"));
  EXPECT_EQ(of("/usr/bin/bash").what, "Python has no module yaml on this host");
}

}  // namespace
}  // namespace dtrun::failures
