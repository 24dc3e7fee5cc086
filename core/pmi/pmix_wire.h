// What an agent and the PMIx server of its host (dtrun-pmix, a process of its own) tell each other, as frames
// on their socket pair.
//
// libpmix reads what strangers may send, so the agent takes nothing from that process for granted: sizes are
// bounded here, and what a message says is compared with the job in pmix_server.cc. Values and pure
// functions; any thread.
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

// Of a frame: what the ranks of a host tell the others in one fence is the largest.
inline constexpr std::size_t kMaxPmixFrameBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxPmixFenceBytes = kMaxPmixFrameBytes - (std::size_t{1} << 20);
inline constexpr std::size_t kMaxPmixTextBytes = 64 << 10;
// To the server, which believes its agent: the parts of all hosts.
inline constexpr std::size_t kMaxPmixAnswerBytes = std::size_t{1} << 30;

// To the server: once, first.
struct PmixBegin {
  Job job;
  std::string disk, memory;  // Folders, which are there
};
// The answer to a PmixFenced.
struct PmixAnswer {
  std::uint64_t fence = 0;
  bool complete = false;  // else it failed
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
// A rank has come to MPI_Init, to MPI_Finalize, to MPI_Abort, or has something to say.
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
// All ranks of this host that take part in a fence have come.
struct PmixFenced {
  std::uint64_t fence = 0;          // counted from 0
  std::vector<std::int32_t> ranks;  // of all hosts, rising; empty: all of the job
  std::string bytes;
};
using FromPmix =
    std::variant<PmixReady, PmixRefused, PmixStarted, PmixFinished, PmixAborted, PmixSaid, PmixFenced>;

// Whole frames, size included.
std::string Encode(const ToPmix& message);
std::string Encode(const FromPmix& message);

// These decode the bytes behind the size.
Result<ToPmix> DecodeToPmix(std::string_view payload);
Result<FromPmix> DecodeFromPmix(std::string_view payload);

}  // namespace dtrun::pmi
