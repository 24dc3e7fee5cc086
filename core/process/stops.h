// Children that a signal such as SIGSTOP has stopped: they neither work nor end, and others wait for them.
//
// Asks the kernel a few times a second. Owned by a host; loop thread. Processes held by a debugger
// are not reported, and a stop that a tool of dtrun causes does not count.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>

#include "core/base/asio.h"

namespace dtrun::process {

class Stops {
 public:
  // `stopped` is called from the loop, or from Look. `ours`: whether a tool of dtrun may have stopped it just
  // now, and lets it go on.
  Stops(
      boost::asio::io_context& loop, std::function<void(pid_t child, int signal)> stopped,
      std::function<bool(pid_t child)> ours = [](pid_t) { return false; });
  ~Stops() { *ended_ = true; }
  Stops(const Stops&) = delete;
  Stops& operator=(const Stops&) = delete;

  void Look();
  // By the last look; 0: it has not been stopped, or goes on.
  int SignalOf(pid_t child) const;

 private:
  void Wait();

  boost::asio::steady_timer timer_;
  std::function<void(pid_t child, int signal)> stopped_;
  std::function<bool(pid_t child)> ours_;
  std::map<pid_t, int> signals_;
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for a timer that is due already
};

}  // namespace dtrun::process
