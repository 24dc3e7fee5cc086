// Lines of text over a Unix socket: how `dtrun bench` speaks with the job and the ranks of each layer.
//
// The job of a layer connects, says what it has chosen, and leaves. A rank connects, says "hello", and then
// sleeps in a read until it is told something, so a layer that is not being measured takes no processor time;
// the end of the stream is the end of the run.
//
//   job:  library TEXT                              of its backend; before its ranks start
//   rank: hello RANK RANKS SECONDS-TO-JOIN DESCRIPTION
//   verb: prepare BUFFERS OPERATION TYPE BYTES      rank: ok | unsupported WHY
//   verb: check BUFFERS                             rank: ok | wrong WHAT | unsupported WHY
//   verb: run BUFFERS WARMUP SAMPLES ITERATIONS     rank: times NANOSECONDS-PER-CALL ...
//
// BUFFERS is private or registered; a rank keeps one call prepared with each. Any answer may be
// "error WHY" instead, and is then the last one. A channel belongs to one thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::bench {

class Channel {
 public:
  explicit Channel(UniqueFd fd) : fd_(std::move(fd)) {}
  // The end of a job or rank.
  static Result<Channel> Connect(const std::filesystem::path& socket);

  int descriptor() const { return fd_.get(); }
  // False when the other side is gone.
  bool Send(std::string_view line);
  // Blocks; nothing at the end of the stream.
  std::optional<std::string> Receive();
  // Reads what is there, blocking when nothing is; false at the end of the stream.
  bool Fill();
  // A whole line that has been read.
  std::optional<std::string> Next();

 private:
  UniqueFd fd_;
  std::string unread_;
};

}  // namespace dtrun::bench
