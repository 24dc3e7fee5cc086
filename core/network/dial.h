// A connection from one candidate to another that knows who is at its other end.
//
// A session keeps itself while it waits; loop thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/network/candidate.h"
#include "core/network/handshake.h"
#include "core/network/session.h"

namespace dtrun::network {

struct Call {
  int host = 0;  // this one's number
  std::string key;
  bool by_device = true;
  Candidate from;
  int peer = 0;
  Candidate to;
  Purpose purpose = Purpose::kReach;
};

struct Handshake {
  std::string why;  // it failed; empty: the peer is at the other end
  std::chrono::nanoseconds round_trip{};
};

// `done` comes from the loop, never from inside. The session's deadline bounds it.
void Dial(const std::shared_ptr<Session>& session, const Call& call,
          std::function<void(const Handshake&)> done);

}  // namespace dtrun::network
