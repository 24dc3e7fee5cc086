// Lines of text over a Unix socket, between `dtrun bench` and the job and ranks of each layer.
//
// The job of a layer connects, reports its choices, and disconnects. A rank connects, sends "hello", and then
// blocks in a read until it gets a command, so an idle layer uses no processor time. The run ends with the
// end of the stream.
//
//   job:  library TEXT                              of its backend; before its ranks start
//   rank: hello RANK RANKS SECONDS-TO-JOIN DESCRIPTION
//   verb: prepare BUFFERS OPERATION TYPE BYTES      rank: ok | unsupported WHY
//   verb: check BUFFERS                             rank: ok | wrong WHAT | unsupported WHY
//   verb: run BUFFERS WARMUP SAMPLES ITERATIONS     rank: times NANOSECONDS-PER-CALL ...
//
// BUFFERS is private or registered; a rank keeps one prepared call for each. Any answer may instead be "error
// WHY", which is then the last one. A channel belongs to one thread.
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
  // The end used by a job or rank.
  static Result<Channel> Connect(const std::filesystem::path& socket);

  int descriptor() const { return fd_.get(); }
  // False if the other side is gone.
  bool Send(std::string_view line);
  // Blocks; nullopt at the end of the stream.
  std::optional<std::string> Receive();
  // Reads available data and blocks if there is none; false at the end of the stream.
  bool Fill();
  // The next complete line already read.
  std::optional<std::string> Next();

 private:
  UniqueFd fd_;
  std::string unread_;
};

}  // namespace dtrun::bench
