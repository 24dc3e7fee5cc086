// A connection from one candidate to another that verifies the identity of the other end.
//
// A waiting session keeps itself alive; loop thread.
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
  int host = 0;  // this host's number
  std::string key;
  bool by_device = true;
  Candidate from;
  int peer = 0;
  Candidate to;
  Purpose purpose = Purpose::kReach;
};

struct Handshake {
  std::string why;  // why it failed; empty: the other end is the peer
  std::chrono::nanoseconds round_trip{};
};

// The loop calls `done`, never Dial itself. The session's deadline limits it.
void Dial(const std::shared_ptr<Session>& session, const Call& call,
          std::function<void(const Handshake&)> done);

}  // namespace dtrun::network
