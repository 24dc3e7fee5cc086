// How far the clocks of a job's hosts are from the root's: a few round trips to each, now and then.
//
// The host's answer lies somewhere within the round trip; its middle is the estimate, half of the shortest
// round trip the uncertainty. Owned by the controller; loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/timer.h"
#include "core/protocol/host.h"
#include "core/verdict/records.h"

namespace dtrun::job {

class HostClocks {
 public:
  // `ask` sends it to a host, unless that has no ranks; `found` gets each estimate.
  struct Hooks {
    std::function<void(std::size_t host, const protocol::ReadClock& question)> ask;
    std::function<void(std::size_t host, const verdict::fact::HostClock& clock)> found;
  };

  HostClocks(asio::io_context& loop, std::size_t hosts, Hooks hooks);

  void On(std::size_t host, const protocol::ClockRead& read);

 private:
  struct Asked {
    int left = 0;  // round trips of this look
    std::uint32_t number = 0;
    std::uint64_t sent = 0;
    std::uint64_t shortest = 0;  // round trip; 0: none
    std::int64_t ahead = 0;      // by that
  };
  void Look();
  void Ask(std::size_t host);

  const Hooks hooks_;
  std::vector<Asked> hosts_;
  std::uint32_t last_ = 0;
  Timer timer_;
};

}  // namespace dtrun::job
