// Looks at the flight recorder ten times a second while the job runs.
//
// Owned by the host whose ranks write it; loop thread. What it finds goes to the root, which tells the
// user and all hosts. What ranks elsewhere call comes as windows, which other hosts' checks send.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/contract/checker.h"
#include "core/contract/window.h"

namespace dtrun::node {

class Check {
 public:
  struct Events {
    std::function<void(contract::Difference)> differed;           // at most once
    std::function<void(contract::Damage)> damaged;                // once for a rank
    std::function<void(std::vector<contract::Window>)> reported;  // for the other hosts
  };

  // `loop` and the memory of `recorder memory` outlive it. `ranks` of the world live on this host.
  Check(boost::asio::io_context& loop, const contract::RecorderMemory& recorder_memory,
        std::vector<int> ranks, Events events);

  ~Check() { *ended_ = true; }
  Check(const Check&) = delete;
  Check& operator=(const Check&) = delete;

  // What the ranks of this host called last.
  std::string History() const;

 private:
  void Wait();
  void Look();
  bool IsHere(int rank) const;

  contract::Checker checker_;
  contract::Reporter reporter_;
  const std::vector<int> ranks_;
  boost::asio::steady_timer timer_;
  const Events events_;
  bool differed_ = false;
  int looks_ = 0;                                                      // at a difference that is not exact
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for a tick that is due already
};

}  // namespace dtrun::node
