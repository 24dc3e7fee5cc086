// Shared by tests of verdicts and suspicions: ranks, runs, sample outputs, and a job of four ranks.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "core/verdict/recognise.h"
#include "core/verdict/verdict.h"

namespace dtrun::verdict::testing {

inline const std::vector<std::string> kTimedOut = {
    "Traceback (most recent call last):",
    "  File \"/home/u/train.py\", line 6, in <module>",
    "    dist.all_reduce(t)",
    "  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", line 1322, in "
    "all_reduce",
    "    work.wait()",
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 20000ms "
    "for recv "
    "operation to complete"};
inline const std::vector<std::string> kClosed = {
    "Traceback (most recent call last):", "  File \"/home/u/train.py\", line 6, in <module>",
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer "
    "[127.0.0.1]:4711"};
inline const std::vector<std::string> kOwn = {
    "Traceback (most recent call last):", "  File \"/home/u/train.py\", line 9, in <module>",
    "ValueError: the true cause"};

// A rank, and a run of such ranks.
inline RankFacts Rank(int rank, process::Ending ending, std::chrono::milliseconds at, int signal_sent = 0) {
  RankFacts facts;
  facts.rank = rank;
  facts.host = "localhost";
  facts.pid = 4242 + rank;
  facts.ending = ending;
  facts.ended_at = at;
  facts.signal_sent = signal_sent;
  return facts;
}

inline Facts RunOf(std::vector<RankFacts> ranks, int first_failed) {
  Facts facts;
  facts.job = "quickstart";
  facts.logs = "/runs/1";
  facts.duration = std::chrono::milliseconds(3300);
  facts.ranks = std::move(ranks);
  facts.first_failed = first_failed;
  return facts;
}

inline constexpr process::Ending kOk{};
inline constexpr process::Ending kTerm{0, SIGTERM, false};
inline constexpr process::Ending kKill{0, SIGKILL, false};

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
      rank.ended_at = std::chrono::milliseconds(i == 0 ? 20'000 : 20'100);
      facts_.ranks.push_back(rank);
    }
  }

  void Does(std::size_t rank, stacks::Stand stand, const std::string& phrase) {
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

}  // namespace dtrun::verdict::testing
