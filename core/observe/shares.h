// How each rank spends its time, estimated from looks at all ranks at about the same moment: the share of
// looks in which it waited for other ranks, and in which it was elsewhere while others waited.
//
// Sampling as in statistical profilers: of n looks, a share has a standard error of at most 1 / (2 sqrt n).
// A value; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/verdict/facts.h"

namespace dtrun::observe {

struct RankShare {
  int rank = 0;
  int looks = 0;
  // Shares of its looks, 0 to 1.
  double waits = 0;   // for other ranks
  double input = 0;   // for its data loader
  double saves = 0;   // in which it wrote a checkpoint
  double delays = 0;  // elsewhere, while at least half of those that may wait for it did
  // Since the first look, per second.
  double processors = 0;  // CPU seconds, with all descendants
  double bytes = 0;       // read and written, with all descendants
  double faults = 0;      // page faults that waited for a disk, with all descendants
  double network = 0;     // bytes received and sent by its host, without loopback
  // At the last look.
  std::int64_t resident = 0;  // bytes in memory, with all descendants
  std::optional<verdict::GpuUse> gpu = {};
  std::string now;         // its place at the last look
  bool in_source = false;  // whether that names a line
  std::string usual;       // its most frequent place while it delayed others; empty: it never did
  std::vector<int> whom;   // it delayed, in at least half of those looks; empty: all others, or none
};

class Shares {
 public:
  using Clock = std::chrono::steady_clock;

  // `looked`: resolved (verdict/awaiting.h). `at` must increase from look to look. The sign test counts only
  // looks between which a rank that waits has gone on.
  void Add(const std::vector<verdict::RankDoing>& looked, Clock::time_point at);
  int looks() const { return looks_; }

  // By rank.
  std::vector<RankShare> Ranks() const;
  // The rank that makes the others wait, if it is clear: most looks found it elsewhere while others waited,
  // and a sign test excludes that the next one is as often late. `least`: the share of such looks.
  std::optional<RankShare> Straggler(double least = 0.6) const;

 private:
  struct Use {
    std::int64_t processor_ms = 0, bytes = 0, faults = 0, network = 0, resident = 0;
  };
  static Use UseOf(const verdict::RankDoing& doing) {
    return {doing.processor_ms, doing.bytes, doing.faults, doing.network, doing.resident};
  }
  struct Rank {
    int looks = 0, waits = 0, input = 0, saves = 0, delays = 0;
    int counted = 0;  // of `delays`, for the sign test
    Use before, use;  // at the first and the last look
    Clock::time_point first{}, last{};
    std::optional<verdict::GpuUse> gpu;
    std::string now;
    bool in_source = false;
    std::map<std::string, int> places;  // while it delayed others
    std::map<int, int> whom;            // looks in which it delayed that rank
    std::optional<std::int64_t> wait;   // its last one
  };

  int looks_ = 0;
  std::map<int, Rank> ranks_;
};

// "rank 1 makes the others wait: in 84 % of 12 looks it was elsewhere, mostly in time.sleep at train.py:6,
// while they waited"
std::string StragglerText(const RankShare& straggler);

}  // namespace dtrun::observe
