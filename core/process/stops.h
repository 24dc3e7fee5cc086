// Detects children stopped by a signal such as SIGSTOP: they neither work nor end, and other ranks wait for
// them.
//
// Asks the kernel a few times a second. Owned by a host; loop thread. Ignores processes held by a debugger
// and stops caused by dtrun's own tools.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>

#include "core/base/asio.h"

namespace dtrun::process {

class Stops {
 public:
  // `stopped` is called from the loop, or from Look. `ours`: whether a dtrun tool may have stopped the child
  // just now and will let it continue.
  Stops(
      boost::asio::io_context& loop, std::function<void(pid_t child, int signal)> stopped,
      std::function<bool(pid_t child)> ours = [](pid_t) { return false; });
  ~Stops() { *ended_ = true; }
  Stops(const Stops&) = delete;
  Stops& operator=(const Stops&) = delete;

  void Look();
  // The stop signal at the last look; 0: not stopped, or continued.
  int SignalOf(pid_t child) const;

 private:
  void Wait();

  boost::asio::steady_timer timer_;
  std::function<void(pid_t child, int signal)> stopped_;
  std::function<bool(pid_t child)> ours_;
  std::map<pid_t, int> signals_;
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for a queued timer handler
};

}  // namespace dtrun::process
