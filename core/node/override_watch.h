// The variables by which ranks find each other (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE), where a rank's
// program, or a script before it, has set them to something else than dtrun did.
//
// Looks from outside, rarely, at the ranks of this host. Owned by the local host; loop thread.
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
  // When it looks: twice as late each time, until the longest.
  struct Times {
    std::chrono::milliseconds first{1000}, longest{64'000};
  };

  // `told` is called from the loop, each time there is more to tell.
  OverrideWatch(boost::asio::io_context& loop, std::vector<Inspector::Target> ranks,
                std::function<void(const protocol::Looked&)> told, Times times);
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
  const std::function<void(const protocol::Looked&)> told_;
  const Times times_;
  std::map<int, std::string> known_;  // what was told of each rank, as a text
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for a timer that is due already
};

}  // namespace dtrun::node
