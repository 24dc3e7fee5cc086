// How a rank waits for another: it spins briefly, yields, then sleeps in the kernel.
//
// With more ranks than processors it does not spin; nor does a queue's thread, because its program computes
// meanwhile. Thread-safe; stateless, except for the measured properties of the machine.
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

// Longest sleep before a waiter checks for dead peers, aborts and its deadline.
inline constexpr std::chrono::milliseconds kLookAround{20};

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Prefetches the line of `place` for writing. The builtin prefetches for reading unless it is compiled for
// processors that all have this instruction. x86-64 processors without it execute it as a no-op.
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

// Sleeps while `word` is `seen`, at most `timeout`. Works between processes.
inline void Sleep(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                  std::chrono::nanoseconds timeout) {
  const timespec limit{timeout.count() / 1'000'000'000, timeout.count() % 1'000'000'000};
  (void)syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

inline void WakeAll(const std::atomic<std::uint32_t>& word) {
  (void)syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

// A publisher stores a word and reads a flag; a sleeper sets the flag and reads the word. One of them must
// see the other's store, so each needs a barrier in between. Publishing is frequent and sleeping is rare:
// with membarrier the sleeper pays for both, and the publisher need not wait until it owns the line it
// writes.
enum class Ordering { kByPublisher, kBySleeper };

// kBySleeper if this process supports it; all that share the memory must.
inline Ordering BestOrdering() {
  const bool can = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return can ? Ordering::kBySleeper : Ordering::kByPublisher;
}

// Announces that this thread is about to sleep. Read the word again before sleeping.
inline void Announce(std::atomic<std::uint32_t>& sleepers, Ordering ordering) {
  sleepers.store(1);
  if (ordering == Ordering::kBySleeper) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

// Publishes a value of `word` and wakes its sleepers.
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
