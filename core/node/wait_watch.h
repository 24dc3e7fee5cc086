// How the ranks of this host spend their time: looks at all of them at regular moments while the job runs,
// and keeps a letter for each look. The root compares the letters of all hosts (core/observe/straggler.h).
//
// Looks come four times a second. Once kMostLooks are kept, every second one is dropped and the interval
// doubles: a long job has looks from its beginning to its end, and costs ever less. All hosts do so at the
// same counts and begin when they are told to start ranks, so that equal positions are about the same moment.
// Owned by the local host; loop thread. A look stops no rank; see inspector.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/timer.h"
#include "core/node/inspector.h"
#include "core/node/rivals.h"
#include "core/protocol/host.h"
#include "core/stacks/kernel.h"

namespace dtrun::node {

class WaitWatch {
 public:
  static constexpr std::size_t kMostLooks = 256;  // even
  using Living = std::function<std::vector<Inspector::Target>()>;
  using Calls = std::function<void(std::vector<verdict::RankDoing>&)>;

  // `living`: the ranks to look at now. `calls` adds the calls that they have recorded. `interval`: the first
  // one.
  WaitWatch(asio::io_context& loop, Living living, Calls calls,
            std::chrono::milliseconds interval = std::chrono::milliseconds(250));

  // What the looks so far have seen, by rank.
  std::vector<protocol::RankLooks> Seen() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Rank {
    protocol::RankLooks looks;          // its letters, and for whom it waited
    std::vector<std::int64_t> waits;    // by look: RankDoing::Wait
    std::map<std::string, int> places;  // where it was elsewhere
    std::map<Rival, int> rivals;        // that kept its processors busy
    stacks::Scheduled last = {};
    Clock::time_point looked{};
    std::chrono::nanoseconds active{}, watched{};
  };

  void Wait();
  void Look();
  void Add(std::size_t look, std::vector<verdict::RankDoing> seen);
  void AddUse(Rank& rank, const verdict::RankDoing& doing);
  void Halve();

  Timer timer_;
  Inspector inspector_;
  const Living living_;
  const Calls calls_;
  const Clock::time_point begun_ = Clock::now();
  std::chrono::milliseconds interval_;
  std::uint32_t every_ = 1;  // in units of the first interval
  bool looking_ = false;
  // Looks to leave out after one that a rank did not answer: its thread may be stuck with the rank.
  std::uint32_t pause_ = 0, paused_ = 0;
  std::map<int, Rank> ranks_;
  Rivals rivals_;
};

}  // namespace dtrun::node
