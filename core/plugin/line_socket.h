// One end of the probe's socketpair: whole lines, with a deadline.
//
// Not shared between threads.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::plugin {

class LineSocket {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit LineSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  // Sends `line` and a newline. A peer that went away is DTRUN_REMOTE_FAILURE.
  Status Send(std::string line);
  // The next line, or nullopt at the end of the stream. DTRUN_TIMEOUT at `deadline`
  // (nullopt: none). Meanwhile what arrives at `other` (-1: none) is appended to *tail,
  // of which the last kTailBytes are kept.
  Result<std::optional<std::string>> Receive(std::optional<Time> deadline, int other, std::string* tail);

  static constexpr std::size_t kTailBytes = 2048;

 private:
  UniqueFd fd_;
  std::string buffer_;
};

// Reads what is there, without waiting; false at the end of the stream.
bool DrainTail(int fd, std::string* tail);

}  // namespace dtrun::plugin
