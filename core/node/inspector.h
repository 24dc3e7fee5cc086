// Samples what the ranks of this host do, with a time limit. A process stuck in the kernel or blocked on a
// dead disk delays only the thread that inspects it.
//
// Owned by the local host; loop thread. Each process has its own inspecting thread, which is not awaited
// beyond the limit and ends with this process. Native stacks are taken of one rank at a time, because that
// stops it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/timer.h"
#include "core/protocol/host.h"
#include "core/stacks/doing.h"
#include "core/stacks/unwinder.h"
#include "core/verdict/facts.h"

namespace dtrun::node {

// On a busy host a debugger takes seconds to start; its result is worth the wait.
inline constexpr std::chrono::seconds kLookPatience{5};
// The part of it for native stacks of all ranks.
inline constexpr std::chrono::milliseconds kUnwindPatience{4500};

class Inspector {
 public:
  struct Target {
    int rank = 0;   // the first rank in it
    pid_t pid = 0;  // its process, or the program that starts its ranks
    int count = 1;
    // The values that dtrun set for the variables that are compared with their current values.
    std::map<std::string, std::string> given = {};
    // The job's private folder, to ask torch's recorders there; empty: they are not asked.
    std::filesystem::path sockets = {};
    stacks::Detail detail = stacks::Detail::kAll;  // kPlace: and no usage
  };
  using Done = std::function<void(std::vector<verdict::RankDoing>)>;

  explicit Inspector(asio::io_context& loop) : loop_(loop) {}
  ~Inspector() { Cancel(); }
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  // The loop calls `done` with the results by rank. A new look cancels the one in progress. `closely`: ranks
  // about to be ended; their native stacks are taken as well.
  void Look(const std::vector<Target>& targets, Done done, std::vector<int> closely = {},
            std::chrono::nanoseconds limit = kLookPatience);
  void Cancel();

  // Whether a tool that takes native stacks may have stopped `pid` just now.
  bool HasStopped(pid_t pid) const { return attached_->Has(pid); }
  // The running tools, children of this process. KillTools sends them SIGKILL; call it before the ranks are
  // killed.
  std::vector<pid_t> tools() const { return attached_->tools(); }
  void KillTools() { attached_->KillTools(); }

 private:
  class UnderWay;

  asio::io_context& loop_;
  const std::shared_ptr<stacks::Attached> attached_ = std::make_shared<stacks::Attached>();
  std::shared_ptr<UnderWay> under_way_;
};

// Detects ranks with changed rendezvous variables (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE): the rank's
// program, or a script before it, has set them to other values than dtrun did.
//
// Inspects the ranks of this host from outside, rarely. Owned by the local host; loop thread.
class OverrideWatch {
 public:
  // Interval between looks: doubles each time, up to `longest`.
  struct Times {
    std::chrono::milliseconds first{1000}, longest{64'000};
  };

  // The loop calls `told` whenever there is news.
  OverrideWatch(asio::io_context& loop, std::vector<Inspector::Target> ranks,
                std::function<void(const protocol::RendezvousSeen&)> told, Times times);

 private:
  void Wait(std::chrono::milliseconds after);
  void Look();
  void Tell(const std::vector<verdict::RankDoing>& seen);

  Timer timer_;
  Inspector inspector_;
  const std::vector<Inspector::Target> ranks_;
  const std::function<void(const protocol::RendezvousSeen&)> told_;
  const Times times_;
  std::map<int, std::string> known_;  // reported text of each rank
};

}  // namespace dtrun::node
