// Samples what the ranks of this host do, with a limit: a process that is stuck in the kernel, or blocked on
// a dead disk, holds up only the thread that looks at it.
//
// Owned by the local host; loop thread. Each process is looked at in a thread of its own, which nobody waits
// for beyond the limit; the end of this process ends it. Native stacks are taken of one rank at a time, since
// that stops it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/stacks/attached.h"
#include "core/verdict/facts.h"

namespace dtrun::node {

// On a busy host a debugger takes seconds to begin; what it tells is worth them.
inline constexpr std::chrono::seconds kLookPatience{5};
// Of these the native stacks of all ranks may take so much.
inline constexpr std::chrono::milliseconds kUnwindPatience{4500};

class Inspector {
 public:
  struct Target {
    int rank = 0;   // the first one that lives in it
    pid_t pid = 0;  // of its process, or of the program that starts its ranks
    int count = 1;
    // What dtrun has set for it, of the variables that are compared with what it has now.
    std::map<std::string, std::string> given = {};
  };
  using Done = std::function<void(std::vector<verdict::RankDoing>)>;

  explicit Inspector(boost::asio::io_context& loop) : loop_(loop) {}
  ~Inspector() { Cancel(); }
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  // `done` is called from the loop, by rank; of several looks under way the last one answers. `closely`:
  // ranks that are about to be ended, whose native stacks are wanted as well.
  void Look(const std::vector<Target>& targets, Done done, std::vector<int> closely = {},
            std::chrono::nanoseconds limit = kLookPatience);
  void Cancel();

  // Whether a tool that takes its native stacks may have stopped it just now.
  bool HasStopped(pid_t pid) const { return attached_->Has(pid); }
  // The tools that run, children of this process; SIGKILL to them, before the ranks get theirs.
  std::vector<pid_t> tools() const { return attached_->tools(); }
  void KillTools() { attached_->KillTools(); }

 private:
  class UnderWay;

  boost::asio::io_context& loop_;
  const std::shared_ptr<stacks::Attached> attached_ = std::make_shared<stacks::Attached>();
  std::shared_ptr<UnderWay> under_way_;
};

}  // namespace dtrun::node
