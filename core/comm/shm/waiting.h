// How a rank waits for another: it spins briefly, gives way, then sleeps in the kernel.
//
// With more ranks than processors it does not spin at all, nor does the thread of a queue: its program
// computes meanwhile. Thread-safe; no state but the measure of the machine.
#pragma once

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "core/comm/shm/layout.h"
#include "core/contract/environment.h"

namespace dtrun::shm {

// Longest sleep before a waiter looks for dead peers, aborts and its deadline.
inline constexpr std::chrono::milliseconds kLookAround{20};

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Asks for the line of `place` as one that is going to be written. The builtin asks for one to
// read unless it is compiled for processors that all have the other instruction; on x86-64 those
// that lack it take it for no instruction at all.
inline void PrefetchToWrite(const void* place) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(place)));
#else
  __builtin_prefetch(place, 1);
#endif
}

// True once `word` has reached `target`.
inline bool Reached(std::uint32_t value, std::uint32_t target) {
  return static_cast<std::int32_t>(value - target) >= 0;
}

// Sleeps while `word` is `seen`, at most `timeout`. Shared between processes.
inline void Sleep(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                  std::chrono::nanoseconds timeout) {
  const timespec limit{timeout.count() / 1'000'000'000, timeout.count() % 1'000'000'000};
  (void)syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

inline void WakeAll(const std::atomic<std::uint32_t>& word) {
  (void)syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

// Who publishes stores a word and looks at a flag; who goes to sleep sets the flag and looks at
// the word. One of the two must see the other's store, so each needs a barrier in between.
// Publishing is frequent and sleeping is not: where the system has membarrier, the sleeper pays
// for both, and who publishes need not wait until the line it writes is its own.
enum class Ordering { kByPublisher, kBySleeper };

// kBySleeper when this process can take part in it; all that share memory must.
inline Ordering BestOrdering() {
  const bool can = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return can ? Ordering::kBySleeper : Ordering::kByPublisher;
}

// Says that this thread is about to sleep. The next look at the word decides.
inline void Announce(std::atomic<std::uint32_t>& sleepers, Ordering ordering) {
  sleepers.store(1);
  if (ordering == Ordering::kBySleeper) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

// Publishes a value of `word` and wakes who sleeps on it.
inline void Publish(std::atomic<std::uint32_t>& word, std::uint32_t value,
                    std::atomic<std::uint32_t>& sleepers, Ordering ordering) {
  if (ordering == Ordering::kBySleeper) {
    word.store(value, std::memory_order_release);
  } else {
    word.exchange(value);
  }
  if (sleepers.load() != 0) [[unlikely]] {
    sleepers.store(0);
    WakeAll(word);
  }
}

// How long to try before sleeping.
struct Patience {
  int spins = 0;
  int yields = 0;

  // `wanted`: others may want this processor.
  static Patience For(bool wanted) {
    if (wanted) return {0, 100};
    return {2000, 20};
  }
};

}  // namespace dtrun::shm
