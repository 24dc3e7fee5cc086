// Where other hosts reach this one while networks are being proven: a listening socket on each
// candidate's address, which answers greetings, echoes large messages and counts bursts.
//
// Lives on one event loop; strangers get no answer and at most a few bytes of memory each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/net/candidate.h"

namespace dtrun::net {

class Door {
 public:
  // `host` is this host's number, `key` that of the proof. Fills in the ports of the offer's
  // candidates; those that cannot listen are left out.
  Door(asio::io_context& loop, int host, std::string key, Offer* offer);
  // Ends all connections.
  ~Door();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dtrun::net
