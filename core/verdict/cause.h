// What ended a generation, by order of causality rather than by clocks.
//
// The failure seen first need not be the one that came first: a rank that lost its peer may
// be heard of before the peer's own host reports. So blame is followed: a rank that names a
// peer was not the first if that peer failed by itself, and no rank of a lost host was.
// Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "core/verdict/facts.h"
#include "core/verdict/suspect.h"

namespace dtrun::verdict {

enum class ExitClass {
  kNone,           // success
  kUserError,      // the program failed by itself, or was asked for what cannot be had
  kSignal,         // killed from outside dtrun, by itself, or by the user's Ctrl-C
  kOutOfMemory,    // killed by the kernel's OOM killer
  kRendezvous,     // a peer never came
  kNetwork,        // a peer, or a whole host, that had come was lost
  kPreemption,     // asked to end by SIGTERM, as schedulers do
  kLauncher,       // a process of dtrun was killed
  kIsolatedRanks,  // the ranks never joined each other, which job.isolated_ranks forbids
  kHang,           // a rank stood still, or all did
  kTimeLimit,      // the job took longer than job.time_limit
};

// "user-error", "out-of-memory", ...: the words of restart.on and verdict.json.
std::string_view ClassName(ExitClass exit_class);
// Those that a restart may be for.
std::optional<ExitClass> ClassNamed(std::string_view name);

struct Cause {
  enum class Kind {
    kNone,
    kRank,
    kHost,
    kInterrupt,
    kGuard,
    kIsolatedRanks,
    kStalled,
    kMpiServer,
    kTimeLimit
  };
  Kind kind = Kind::kNone;
  std::size_t index = 0;  // into ranks, or into losses
  ExitClass exit_class = ExitClass::kNone;
  // Of a rank: the one that failed first, with which the job ended. Another one than `index` when that one is
  // suspected of being the reason.
  std::size_t first = 0;
  Suspicion suspicion = {};  // of kStalled too, where nothing was seen first
};

Cause FindCause(const Facts& facts);

// The rank that failed first missed a peer, others had exited with code 0 before, and no other failed.
bool NeededRanksThatHadFinished(const Facts& facts, std::size_t first);

}  // namespace dtrun::verdict
