// How a process ended, as reported by the kernel and the MPI server. Values; any thread.
#pragma once

#include <cstdint>

#include "core/wire/limits.h"

namespace dtrun::process {

// How a rank exited with 0 although other ranks still needed it.
enum class EarlyExit : std::uint8_t {
  kNone,
  kBeforeInit,      // without MPI_Init, which others have called
  kBeforeFinalize,  // between MPI_Init and MPI_Finalize
  kInMember,        // by `_exit` while its main thread was in a plugin's function
};

struct Ending {
  int code = 0;    // valid if signal is 0
  int signal = 0;  // not 0: the signal that killed it
  bool core_dumped = false;
  bool out_of_memory = false;  // killed by a signal, and the kernel's OOM kill counter rose
  int stopped_by = 0;          // not 0: the signal that had stopped it when dtrun ended it
  bool forwarded = false;      // dtrun received this signal and forwarded it
  EarlyExit early_exit = EarlyExit::kNone;
  void Fields(auto& io) {
    io("code", code, wire::kAnyExitCode);
    io("signal", signal, wire::kAnySignal);
    io("core_dumped", core_dumped);
    io("out_of_memory", out_of_memory);
    io("stopped_by", stopped_by, wire::kAnySignal);
    io("forwarded", forwarded);
  }
  bool failed() const { return code != 0 || signal != 0 || early_exit != EarlyExit::kNone; }
};

}  // namespace dtrun::process
