// Tries to reach other hosts from each of this host's candidates, all at once.
//
// Connections use the candidate's address and, where allowed, only its interface (SO_BINDTODEVICE). If the
// kernel's routes use another interface for that address, as libraries would, the connection is not bound to
// the interface and the attempt names the other one. An attempt is connected once the other host has answered
// a challenge and echoed a message larger than any packet. Loop thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/network/candidate.h"
#include "core/wire/limits.h"

namespace dtrun::network {

// Another host and its candidates.
struct Peer {
  int host = 0;
  std::vector<Candidate> candidates;
  void Fields(auto& io) {
    io("host", host, wire::kAnyHost);
    io("candidates", candidates, kMostCandidates);
  }
};

struct ReachOptions {
  int host = 0;     // this host's number
  std::string key;  // of the connectivity check
  bool by_device = true;
  // Limit for all attempts together. Once every peer has been reached, attempts that still wait for a
  // connection dial once more, so that one lost packet does not decide. Attempts not connected soon after
  // that are ended, as are attempts from candidates that reach no peer.
  std::chrono::nanoseconds limit = std::chrono::seconds(2);
  double pace = 0;  // of a bandwidth probe, in bits/s at most; 0: unlimited
};

// `done` is called once, from the loop. Destruction before that cancels the attempts.
class Reach {
 public:
  using Done = std::function<void(std::vector<Attempt>)>;
  Reach(asio::io_context& loop, ReachOptions options, const std::vector<Candidate>& own,
        std::vector<Peer> peers, Done done);
  ~Reach();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Sends for kBandwidthProbe from one candidate to another. Destruction cancels it.
class BandwidthProbe {
 public:
  using Done = std::function<void(Throughput)>;
  BandwidthProbe(asio::io_context& loop, const ReachOptions& options, Candidate own, int peer, Candidate to,
                 Done done);
  ~BandwidthProbe();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dtrun::network
