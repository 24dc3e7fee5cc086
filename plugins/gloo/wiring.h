// The connections of a communicator while they are made: where each peer reaches this rank, and
// who connects to whom.
//
// Gloo's own rendezvous (Context::connectFullMesh) stores 136 bytes for every pair and has every
// rank read all of them, and the names of all hosts besides; on one host the kernel searches for
// a free port n (n - 1) times. Here a rank publishes what differs between its addresses, and ranks
// of one host listen on addresses of their own, where nearly every port is free. On the stack of
// the thread that connects.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "dtrun/interfaces.hpp"

namespace gloo {
class Context;
}

namespace dtrun::gloo_plugin {

class Wiring {
 public:
  // Listens for every peer. Gloo waits five times `timeout` for one, and for ever when it is 0.
  // Throws Gloo's exceptions, as Connect does.
  Wiring(int rank, int size, const interfaces::Interface& interface, std::chrono::milliseconds timeout);

  // What the others need to know; bytes.
  std::string Addresses() const;
  // Connects to `peer`; `theirs` are its Addresses(). REQUIRES that every rank connects to its peers
  // in ascending order, so that ranks never wait for each other in a circle.
  void Connect(int peer, const std::string& theirs);

  std::shared_ptr<::gloo::Context> context() const;

 private:
  class Wired;
  const std::shared_ptr<Wired> context_;
};

}  // namespace dtrun::gloo_plugin
