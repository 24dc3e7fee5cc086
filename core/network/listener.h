// Where other hosts reach this one during connectivity checks: a listening socket on each candidate's address
// that answers hellos, echoes large messages and counts bandwidth probes.
//
// Lives on one event loop; unauthenticated clients get no answer and use at most a few bytes of memory each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/network/candidate.h"

namespace dtrun::network {

class Listener {
 public:
  // `host` is this host's number, `key` that of the connectivity check. Fills in the ports of the offer's
  // candidates and removes those that cannot listen.
  Listener(asio::io_context& loop, int host, std::string key, Offer* offer);
  // Closes all connections.
  ~Listener();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dtrun::network
