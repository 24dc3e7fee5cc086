// Determines since when each rank is stuck, from several looks.
//
// A rank moves when it reads, writes or changes its code location; it works when it uses CPU time. A rank
// that does neither between looks is stuck. Pure; any thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "core/protocol/host.h"

namespace dtrun::job {

class Standstill {
 public:
  using Clock = std::chrono::steady_clock;

  // Adds a look made at `at`, later than all before.
  void Add(const protocol::Inspected& seen, Clock::time_point at);
  // Discards all earlier looks.
  void Forget() { *this = Standstill(); }

  // How long nothing has moved; 0 before the first look.
  std::chrono::nanoseconds Lasts() const { return looked_ - moved_; }
  // How long this rank has neither moved nor worked.
  std::chrono::nanoseconds Lasts(int rank) const { return looked_ - ranks_.at(rank).since; }
  // Whether it worked between the last two looks.
  bool Works(int rank) const { return ranks_.at(rank).works; }

 private:
  struct Rank {
    verdict::RankDoing seen;      // at the last look, without stacks
    Clock::time_point since{};    // when it became stuck
    std::int64_t used_then_ms{};  // its CPU time at `since`
    bool works = false;
  };

  std::map<int, Rank> ranks_;
  std::optional<std::uint64_t> calls_;
  Clock::time_point moved_{}, looked_{};
};

}  // namespace dtrun::job
