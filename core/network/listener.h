// Where other hosts reach this one while networks are being checked: a listening socket on each
// candidate's address, which answers hellos, echoes large messages and counts bandwidth probes.
//
// Lives on one event loop; strangers get no answer and at most a few bytes of memory each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/network/candidate.h"

namespace dtrun::network {

class Listener {
 public:
  // `host` is this host's number, `key` that of the connectivity check. Fills in the ports of the offer's
  // candidates; those that cannot listen are left out.
  Listener(asio::io_context& loop, int host, std::string key, Offer* offer);
  // Ends all connections.
  ~Listener();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dtrun::network
