// Since when each rank stands still, by what was seen of it at each of several looks.
//
// A rank moves when it reads or writes, or is found at another place; it works when it uses a processor. One
// that does neither, between all looks, stands still. Pure; any thread.
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

  // What was seen at `at`, later than all before.
  void Add(const protocol::Inspected& seen, Clock::time_point at);
  // Looks before this do not count any more.
  void Forget() { *this = Standstill(); }

  // How long nothing has moved; 0 before the first look.
  std::chrono::nanoseconds Lasts() const { return looked_ - moved_; }
  // How long this rank has neither moved nor worked.
  std::chrono::nanoseconds Lasts(int rank) const { return looked_ - ranks_.at(rank).since; }
  // Whether it has worked between the last two looks.
  bool Works(int rank) const { return ranks_.at(rank).works; }

 private:
  struct Rank {
    verdict::RankDoing seen;      // at the last look, without stacks
    Clock::time_point since{};    // that it stands still
    std::int64_t used_then_ms{};  // its processor time at `since`
    bool works = false;
  };

  std::map<int, Rank> ranks_;
  std::optional<std::uint64_t> calls_;
  Clock::time_point moved_{}, looked_{};
};

}  // namespace dtrun::job
