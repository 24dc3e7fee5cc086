// One host's part in proving networks: its doors, its tries and its bursts, one after another.
//
// Loop thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/net/door.h"
#include "core/net/reach.h"

namespace dtrun::net {

class Prover {
 public:
  // Opens the doors of this host's candidates; those that cannot listen move to `offer->left_out`.
  Prover(asio::io_context& loop, int host, std::string key, Offer* offer)
      : loop_(loop),
        host_(host),
        key_(std::move(key)),
        door_(loop, host, key_, offer),
        own_(offer->candidates) {}

  void Prove(std::vector<Peer> peers, bool by_device, std::chrono::nanoseconds limit, Reach::Done done) {
    reach_.emplace(loop_, ReachOptions{host_, key_, by_device, limit}, own_, std::move(peers),
                   std::move(done));
  }
  // REQUIRES: `from` is the number of a candidate.
  void Measure(std::size_t from, int peer, const Candidate& to, bool by_device, double pace,
               Burst::Done done) {
    ReachOptions burst_options{host_, key_, by_device};
    burst_options.pace = pace;
    burst_.emplace(loop_, burst_options, own_[from], peer, to, std::move(done));
  }
  std::size_t candidate_count() const { return own_.size(); }

 private:
  asio::io_context& loop_;
  const int host_;
  const std::string key_;
  const Door door_;
  const std::vector<Candidate> own_;
  std::optional<Reach> reach_;
  std::optional<Burst> burst_;
};

}  // namespace dtrun::net
