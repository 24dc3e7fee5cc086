// The messages between an agent and its host's PMIx server (dtrun-pmix, a separate process), as frames on
// their socket pair.
//
// libpmix reads untrusted input, so the agent does not trust that process. Sizes are bounded here;
// pmix_server.cc checks the contents against the job. Values and pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/pmi/server.h"
#include "core/wire/coder.h"

namespace dtrun::pmi {

// Limit of a frame. The largest is one host's contribution to a fence.
inline constexpr std::size_t kMaxPmixFrameBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxPmixFenceBytes = kMaxPmixFrameBytes - (std::size_t{1} << 20);
inline constexpr std::size_t kMaxPmixTextBytes = 64 << 10;
inline constexpr wire::Most kPmixText{kMaxPmixTextBytes};
// Limit to the server, which trusts its agent: the parts of all hosts.
inline constexpr std::size_t kMaxPmixAnswerBytes = std::size_t{1} << 30;

// To the server: the first message, sent once.
struct PmixBegin {
  Job job;
  std::string disk, memory;  // Folders, which must exist
  void Fields(auto& io) {
    io("job", job);
    io("disk", disk, kPmixText);
    io("memory", memory, kPmixText);
  }
};
// The answer to a PmixFenced.
struct PmixAnswer {
  std::uint64_t fence = 0;
  bool complete = false;  // false: it failed
  std::string bytes;
  void Fields(auto& io) {
    io("fence", fence);
    io("complete", complete);
    io("bytes", bytes, wire::Most{kMaxPmixAnswerBytes});
  }
};
using ToPmix = std::variant<PmixBegin, PmixAnswer>;

// To the agent: one of these two, once, first.
struct PmixReady {
  std::vector<std::map<std::string, std::string>> variables;  // by rank of this host
  void Fields(auto& io) { io("variables", variables, wire::kMostEntries, wire::Most{1024}, kPmixText); }
};
struct PmixRefused {
  std::string why;
  void Fields(auto& io) { io("why", why, kPmixText); }
};
// A rank called MPI_Init, MPI_Finalize or MPI_Abort, or sent a message for the user.
struct PmixStarted {
  std::int32_t rank = 0;
  void Fields(auto& io) { io("rank", rank); }
};
struct PmixFinished {
  std::int32_t rank = 0;
  void Fields(auto& io) { io("rank", rank); }
};
struct PmixAborted {
  std::int32_t rank = 0;
  std::int32_t code = 0;
  std::string message;
  void Fields(auto& io) {
    io("rank", rank);
    io("code", code);
    io("message", message, kPmixText);
  }
};
struct PmixSaid {
  std::int32_t rank = 0;
  std::string text;
  void Fields(auto& io) {
    io("rank", rank);
    io("text", text, kPmixText);
  }
};
// All participating ranks of this host have arrived at a fence.
struct PmixFenced {
  std::uint64_t fence = 0;          // counted from 0
  std::vector<std::int32_t> ranks;  // of all hosts, ascending; empty: the whole job
  std::string bytes;
  void Fields(auto& io) {
    io("fence", fence);
    io("ranks", ranks, wire::kMostEntries);
    io("bytes", bytes, wire::Most{kMaxPmixFenceBytes});
  }
};
using FromPmix =
    std::variant<PmixReady, PmixRefused, PmixStarted, PmixFinished, PmixAborted, PmixSaid, PmixFenced>;

// Whole frames, size included.
inline std::string Encode(const ToPmix& message) { return wire::EncodeFrame(message); }
inline std::string Encode(const FromPmix& message) { return wire::EncodeFrame(message); }

// Decode the bytes after the size.
inline Result<ToPmix> DecodeToPmix(std::string_view payload) {
  return wire::Decode<ToPmix>(payload, "message between agent and PMIx server");
}
inline Result<FromPmix> DecodeFromPmix(std::string_view payload) {
  return wire::Decode<FromPmix>(payload, "message between agent and PMIx server");
}

}  // namespace dtrun::pmi
