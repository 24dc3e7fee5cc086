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

namespace dtrun::pmi {

// Limit of a frame. The largest is one host's contribution to a fence.
inline constexpr std::size_t kMaxPmixFrameBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxPmixFenceBytes = kMaxPmixFrameBytes - (std::size_t{1} << 20);
inline constexpr std::size_t kMaxPmixTextBytes = 64 << 10;
// Limit to the server, which trusts its agent: the parts of all hosts.
inline constexpr std::size_t kMaxPmixAnswerBytes = std::size_t{1} << 30;

// To the server: the first message, sent once.
struct PmixBegin {
  Job job;
  std::string disk, memory;  // Folders, which must exist
};
// The answer to a PmixFenced.
struct PmixAnswer {
  std::uint64_t fence = 0;
  bool complete = false;  // false: it failed
  std::string bytes;
};
using ToPmix = std::variant<PmixBegin, PmixAnswer>;

// To the agent: one of these two, once, first.
struct PmixReady {
  std::vector<std::map<std::string, std::string>> variables;  // by rank of this host
};
struct PmixRefused {
  std::string why;
};
// A rank called MPI_Init, MPI_Finalize or MPI_Abort, or sent a message for the user.
struct PmixStarted {
  std::int32_t rank = 0;
};
struct PmixFinished {
  std::int32_t rank = 0;
};
struct PmixAborted {
  std::int32_t rank = 0;
  std::int32_t code = 0;
  std::string message;
};
struct PmixSaid {
  std::int32_t rank = 0;
  std::string text;
};
// All participating ranks of this host have arrived at a fence.
struct PmixFenced {
  std::uint64_t fence = 0;          // counted from 0
  std::vector<std::int32_t> ranks;  // of all hosts, ascending; empty: the whole job
  std::string bytes;
};
using FromPmix =
    std::variant<PmixReady, PmixRefused, PmixStarted, PmixFinished, PmixAborted, PmixSaid, PmixFenced>;

// Whole frames, size included.
std::string Encode(const ToPmix& message);
std::string Encode(const FromPmix& message);

// Decode the bytes after the size.
Result<ToPmix> DecodeToPmix(std::string_view payload);
Result<FromPmix> DecodeFromPmix(std::string_view payload);

}  // namespace dtrun::pmi
