// Keeps SIGPIPE away from Gloo, which writes to sockets that may be closed.
//
// A scope on the stack of the thread that it affects.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace dtrun::gloo_plugin {

// A write to a closed socket, made by this thread while it lives, raises no SIGPIPE.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const timespec now{};
    // SIGPIPE is directed at the writing thread, so what is pending now is ours to take.
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_;
};

}  // namespace dtrun::gloo_plugin
