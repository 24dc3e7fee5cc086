// One end of the probe's socketpair: sends and receives whole lines, with a deadline.
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

  // Sends `line` and a newline. DTRUN_REMOTE_FAILURE if the peer is gone.
  Status Send(std::string line);
  // The next line, or nullopt at the end of the stream. DTRUN_TIMEOUT at `deadline` (nullopt:
  // none). Meanwhile appends data from `other` (-1: none) to *tail and keeps its last kTailBytes.
  Result<std::optional<std::string>> Receive(std::optional<Time> deadline, int other, std::string* tail);

  static constexpr std::size_t kTailBytes = 2048;

 private:
  UniqueFd fd_;
  std::string buffer_;
};

// Reads the available data without waiting; false at the end of the stream.
bool DrainTail(int fd, std::string* tail);

}  // namespace dtrun::plugin
