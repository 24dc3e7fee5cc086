// Combines what the hosts of a job exchange for their ranks' MPI libraries. A PMIx fence or a PMI-1 barrier
// completes when every participating host has offered its part. Pending data is bounded: an exchange beyond
// the limits fails for its participants.
//
// Owned by the controller; loop thread. Treats the bytes as opaque.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/wire/limits.h"

namespace dtrun::pmi {

// The contribution of one host.
struct Part {
  std::string exchange;    // unique name, the same on all hosts
  std::vector<int> hosts;  // participating hosts, ascending
  std::string bytes;
  void Fields(auto& io) {
    io("exchange", exchange);
    io("hosts", hosts, wire::kMostHosts);
    io("bytes", bytes);
  }
};

class Exchange {
 public:
  static constexpr std::size_t kMostOpen = 4096;
  static constexpr std::size_t kMostBytes = std::size_t{48}
                                            << 20;  // of all pending parts; a message holds 64 MiB

  // Answers a host with all parts, concatenated in host order, or with an error.
  using Answer = std::function<void(int host, const std::string& exchange, const Result<std::string>& all)>;

  explicit Exchange(Answer answer) : answer_(std::move(answer)) {}

  void Offer(int host, Part part);
  // Ranks have ended: answers pending and later offers with `why`.
  void Fail(const Error& why);
  // Starts a new generation.
  void Reset();

 private:
  struct Open {
    std::vector<int> hosts;
    std::map<int, std::string> parts;  // by host
  };

  void Finish(std::map<std::string, Open>::iterator at, const Result<std::string>& all);

  const Answer answer_;
  std::map<std::string, Open> open_;
  std::size_t bytes_ = 0;  // of the open exchanges
  std::optional<Error> failure_;
};

}  // namespace dtrun::pmi
