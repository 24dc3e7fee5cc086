// Inspects the ranks on all hosts and combines the answers.
//
// Owned by the controller; loop thread. Hosts that do not answer in time are left out.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/base/asio.h"
#include "core/protocol/host.h"

namespace dtrun::job {

class Inspection {
 public:
  using Done = std::function<void(const protocol::Inspected& all)>;

  explicit Inspection(boost::asio::io_context& loop) : timer_(loop) {}

  // `hosts` by their numbers; `done` is called from the loop, or from Answer. Cancels an inspection in
  // progress. `closely`: ranks, see Inspect.
  void Begin(const std::map<std::size_t, protocol::Host*>& hosts, Done done,
             const std::vector<int>& closely = {});
  void Answer(std::size_t host, const protocol::Inspected& inspected);
  void Cancel();

 private:
  void Finish();

  boost::asio::steady_timer timer_;
  std::uint32_t number_ = 0;  // of the request in progress
  std::map<std::size_t, bool> answered_;
  protocol::Inspected all_;
  Done done_;
};

}  // namespace dtrun::job
