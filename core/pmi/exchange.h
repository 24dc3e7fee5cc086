// Joins what the hosts of a job offer each other for their ranks' MPI libraries: a PMIx fence
// or a PMI-1 barrier is complete when every host that takes part has offered its part. What waits is bounded:
// an exchange beyond the limits fails for those who take part in it.
//
// Owned by the controller; loop thread. Knows nothing of what the bytes mean.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::pmi {

// What one host brings.
struct Part {
  std::string exchange;    // its name, the same on all hosts, new each time
  std::vector<int> hosts;  // that take part, rising
  std::string bytes;
};

class Exchange {
 public:
  static constexpr std::size_t kMostOpen = 4096;
  static constexpr std::size_t kMostBytes = std::size_t{48}
                                            << 20;  // of all that wait; a message holds 64 MiB

  // To a host: the parts of all, one after the other by host, or why there are none.
  using Answer = std::function<void(int host, const std::string& exchange, const Result<std::string>& all)>;

  explicit Exchange(Answer answer) : answer_(std::move(answer)) {}

  void Offer(int host, Part part);
  // Ranks have ended: what is open, and what is offered from now on, is answered with `why`.
  void Fail(const Error& why);
  // A new generation.
  void Reset();

 private:
  struct Open {
    std::vector<int> hosts;
    std::map<int, std::string> parts;  // by host
  };

  void Finish(std::map<std::string, Open>::iterator at, const Result<std::string>& all);

  const Answer answer_;
  std::map<std::string, Open> open_;
  std::size_t bytes_ = 0;  // of the open ones
  std::optional<Error> failure_;
};

}  // namespace dtrun::pmi
