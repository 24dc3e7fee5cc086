// Finds the failure that ended a generation. Follows causality rather than clocks.
//
// The failure that the root sees first may be a consequence: a rank that lost its peer may be reported before
// the peer itself. FindCause therefore follows blame. A rank that names a peer is not the cause if that peer
// failed by itself or was on a lost host. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/verdict/facts.h"
#include "core/verdict/suspect.h"

namespace dtrun::verdict {

enum class ExitClass {
  kNone,           // success
  kUserError,      // the program failed by itself, or requested something unavailable
  kSignal,         // killed from outside dtrun, by itself, or by the user's Ctrl-C
  kOutOfMemory,    // killed by the kernel's OOM killer
  kRendezvous,     // a peer never joined
  kNetwork,        // a joined peer, or a whole host, was lost
  kPreemption,     // terminated by SIGTERM, as schedulers do
  kLauncher,       // a process of dtrun was killed
  kIsolatedRanks,  // the ranks never joined each other, which job.isolated_ranks forbids
  kHang,           // one rank or all ranks stopped making progress
  kTimeLimit,      // the job took longer than job.time_limit
  kPlugin,         // a plugin crashed, hung or ended the process
};

// The class as restart.on and verdict.json spell it: "user-error", "out-of-memory", ...
std::string_view ClassName(ExitClass exit_class);
// Accepts only the classes that can trigger a restart.
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
  // kRank: the rank that failed first and ended the job. Differs from `index` if another rank is suspected of
  // being the cause.
  std::size_t first = 0;
  Suspicion suspicion = {};  // also set for kStalled, where no failure was seen
};

Cause FindCause(const Facts& facts);

// The plugin that ended the rank, such as "backend 'demo'"; empty: none.
std::string PluginAtFault(const RankFacts& rank);

// Whether `first` missed a peer, other ranks had already exited with code 0, and no other rank failed.
bool NeededRanksThatHadFinished(const Facts& facts, std::size_t first);

}  // namespace dtrun::verdict
