// Detects ranks with changed rendezvous variables (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE): the rank's
// program, or a script before it, has set them to other values than dtrun did.
//
// Inspects the ranks of this host from outside, rarely. Owned by the local host; loop thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/node/inspector.h"
#include "core/protocol/host.h"

namespace dtrun::node {

class OverrideWatch {
 public:
  // Interval between looks: doubles each time, up to `longest`.
  struct Times {
    std::chrono::milliseconds first{1000}, longest{64'000};
  };

  // The loop calls `told` whenever there is news.
  OverrideWatch(boost::asio::io_context& loop, std::vector<Inspector::Target> ranks,
                std::function<void(const protocol::RendezvousSeen&)> told, Times times);
  ~OverrideWatch() { *ended_ = true; }
  OverrideWatch(const OverrideWatch&) = delete;
  OverrideWatch& operator=(const OverrideWatch&) = delete;

 private:
  void Wait(std::chrono::milliseconds after);
  void Look();
  void Tell(const std::vector<verdict::RankDoing>& seen);

  boost::asio::steady_timer timer_;
  Inspector inspector_;
  const std::vector<Inspector::Target> ranks_;
  const std::function<void(const protocol::RendezvousSeen&)> told_;
  const Times times_;
  std::map<int, std::string> known_;                                   // reported text of each rank
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for a queued timer handler
};

}  // namespace dtrun::node
