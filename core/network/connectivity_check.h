// One host's part in the connectivity check: its listeners, attempts and bandwidth probes, one after another.
//
// Owned by the host's agent; loop thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/network/candidate.h"
#include "core/network/reach.h"

namespace dtrun::network {

// Where other hosts reach this one during connectivity checks: a listening socket on each candidate's address
// that answers hellos, echoes large messages and counts bandwidth probes.
//
// Lives on one event loop; unauthenticated clients get no answer and use at most a few bytes of memory each.
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

class ConnectivityCheck {
 public:
  // Opens the listeners of this host's candidates; those that cannot listen move to `offer->left_out`.
  ConnectivityCheck(asio::io_context& loop, int host, std::string key, Offer* offer)
      : loop_(loop),
        host_(host),
        key_(std::move(key)),
        listener_(loop, host, key_, offer),
        own_(offer->candidates) {}

  void Run(std::vector<Peer> peers, bool by_device, std::chrono::nanoseconds limit, Reach::Done done) {
    reach_.emplace(loop_, ReachOptions{host_, key_, by_device, limit}, own_, std::move(peers),
                   std::move(done));
  }
  // REQUIRES: `from` is the index of a candidate.
  void Measure(std::size_t from, int peer, const Candidate& to, bool by_device, double pace,
               BandwidthProbe::Done done) {
    ReachOptions bandwidth_probe_options{host_, key_, by_device};
    bandwidth_probe_options.pace = pace;
    bandwidth_probe_.emplace(loop_, bandwidth_probe_options, own_[from], peer, to, std::move(done));
  }
  std::size_t candidate_count() const { return own_.size(); }

 private:
  asio::io_context& loop_;
  const int host_;
  const std::string key_;
  const Listener listener_;
  const std::vector<Candidate> own_;
  std::optional<Reach> reach_;
  std::optional<BandwidthProbe> bandwidth_probe_;
};

}  // namespace dtrun::network
