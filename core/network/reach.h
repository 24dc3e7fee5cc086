// Tries to reach other hosts from each of this host's candidates, all at the same time.
//
// Connections leave from the candidate's address and, where allowed, by its interface and no other
// (SO_BINDTODEVICE). Where the kernel's routes take another interface from that address, as those of
// libraries do, they are not held to it, and the attempt names the other one. A try is connected when the
// other host answers a challenge and a message larger than any packet comes and goes. Loop thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/network/attempt.h"
#include "core/network/candidate.h"

namespace dtrun::network {

// Another host, as it can be reached.
struct Peer {
  int host = 0;
  std::vector<Candidate> candidates;
};

struct ReachOptions {
  int host = 0;     // this one's number
  std::string key;  // of the connectivity check
  bool by_device = true;
  // For all tries together. Once every peer has been reached, those that still wait for a connection
  // dial once more, so that one lost packet does not decide; what is not connected then soon ends, and so do
  // tries from candidates that reach nobody.
  std::chrono::nanoseconds limit = std::chrono::seconds(2);
  double pace = 0;  // of a bandwidth probe, in bits/s at most; 0: as fast as it goes
};

// `done` is called once, from the loop. Ends what is under way when it is destroyed first.
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

// Sends for kBandwidthProbe from one candidate to another. Ends what is under way when it is destroyed first.
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
