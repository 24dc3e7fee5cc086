// dtrun/plugin/block_signals.hpp - keeps signals from threads that a backend starts.
//
// Not part of plugin.hpp. A scope on the stack of the thread that starts them: signals belong to the
// program, and a thread inherits the signal mask of its creator.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  // Threads started while it lives have every signal blocked; on_start lets those of a thread's own faults
  // through.
  class BlockSignals {
   public:
    BlockSignals() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, &before_);
    }
    ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    BlockSignals(const BlockSignals&) = delete;
    BlockSignals& operator=(const BlockSignals&) = delete;

   private:
    sigset_t before_;
  };

}  // namespace v1
}  // namespace dtrun::sdk
