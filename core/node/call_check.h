// Checks the flight recorder ten times a second while the job runs.
//
// Owned by the host that runs the ranks which write it; loop thread. Sends findings to the root, which
// reports them to the user and to all hosts. Calls of remote ranks arrive as windows from the checks of other
// hosts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/timer.h"
#include "core/contract/checker.h"
#include "core/contract/window.h"

namespace dtrun::node {

class Check {
 public:
  struct Events {
    std::function<void(contract::Difference)> differed;           // at most once
    std::function<void(contract::Damage)> damaged;                // once per rank
    std::function<void(std::vector<contract::Window>)> reported;  // for the other hosts
  };

  // `loop` and the memory of `recorder_memory` must outlive it. `ranks`: world ranks on this host.
  Check(asio::io_context& loop, const contract::RecorderMemory& recorder_memory, std::vector<int> ranks,
        Events events);

  // The last calls of this host's ranks.
  std::string History() const;

 private:
  void Wait();
  void Look();
  bool IsHere(int rank) const;

  contract::Checker checker_;
  contract::Reporter reporter_;
  const std::vector<int> ranks_;
  Timer timer_;
  const Events events_;
  bool differed_ = false;
  int looks_ = 0;  // at an inexact difference
};

}  // namespace dtrun::node
