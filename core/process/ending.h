// How a process has ended, as the kernel and an MPI library's server tell it. Values; any thread.
#pragma once

#include <cstdint>

namespace dtrun::process {

// How a rank that exited with 0 left others without it.
enum class EarlyExit : std::uint8_t {
  kNone,
  kBeforeInit,      // without MPI_Init, which others have called
  kBeforeFinalize,  // between MPI_Init and MPI_Finalize
  kInMember,        // by `_exit` while its main thread was in a member of a plugin
};

struct Ending {
  int code = 0;    // when signal is 0
  int signal = 0;  // not 0: killed by it
  bool core_dumped = false;
  bool out_of_memory = false;  // killed when the kernel's counter of such kills rose
  int stopped_by = 0;          // not 0: it stood still, stopped by this signal, when dtrun ended it
  bool forwarded = false;      // dtrun had passed this signal on, which it had been sent itself
  EarlyExit early_exit = EarlyExit::kNone;
  bool failed() const { return code != 0 || signal != 0 || early_exit != EarlyExit::kNone; }
};

}  // namespace dtrun::process
