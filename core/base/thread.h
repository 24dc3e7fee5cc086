// Threads that dtrun starts inside a user's program: named, with all signals blocked.
//
// The caller owns and joins the thread. Any thread may start one.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace dtrun {

// `name` has at most 15 bytes.
template <class Body>
std::thread StartThread(const char* name, Body&& body) {
  const struct Masked {  // restored also if the thread cannot start
    Masked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Masked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  } masked;
  return std::thread([name, run = std::forward<Body>(body)] {
    pthread_setname_np(pthread_self(), name);
    run();
  });
}

}  // namespace dtrun
