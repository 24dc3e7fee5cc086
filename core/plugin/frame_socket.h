// One end of the probe's socketpair: sends and receives whole frames (core/wire/coder.h), with a deadline.
//
// Not shared between threads.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/wire/coder.h"

namespace dtrun::plugin {

class FrameSocket {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit FrameSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  // `frame`: with its size. DTRUN_REMOTE_FAILURE if the peer is gone.
  Status Send(std::string_view frame);
  // The payload of the next frame, or nullopt at the end of the stream. DTRUN_TIMEOUT at `deadline` (nullopt:
  // none). Meanwhile appends data from `other` (-1: none) to *tail and keeps its last kTailBytes.
  Result<std::optional<std::string>> Receive(std::optional<Time> deadline, int other, std::string* tail);

  static constexpr std::size_t kTailBytes = 2048;
  // A longer answer is a defect: a description has a few kilobytes.
  static constexpr std::size_t kMaxFrameBytes = 64 << 20;

 private:
  UniqueFd fd_;
  wire::FrameReader frames_{kMaxFrameBytes};
};

// Reads the available data without waiting; false at the end of the stream.
bool DrainTail(int fd, std::string* tail);

}  // namespace dtrun::plugin
