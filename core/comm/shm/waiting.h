// How a rank waits for another: it spins briefly, gives way, then sleeps in the kernel.
//
// With more ranks than processors it does not spin at all. Thread-safe; no state but the
// measure of the machine.
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "core/comm/shm/layout.h"
#include "core/plan/dialect.h"

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

// Publishes a value of `word` and wakes who sleeps on it. The exchange orders the store
// before the look at the flag; the sleeper sets the flag before it looks at the word.
inline void Publish(std::atomic<std::uint32_t>& word, std::uint32_t value,
                    std::atomic<std::uint32_t>& sleepers) {
  word.exchange(value);
  if (sleepers.load() != 0) [[unlikely]] {
    sleepers.store(0);
    WakeAll(word);
  }
}

// How long to try before sleeping.
struct Patience {
  int spins = 0;
  int yields = 0;

  static Patience For(int ranks_here) {
    if (ranks_here <= Processors()) return {2000, 20};
    return {0, 100};
  }

  // That the ranks of this host have together.
  static int Processors() {
    const char* const together = std::getenv(dialect::kLocalProcessors);
    if (together != nullptr && std::atoi(together) > 0) return std::atoi(together);
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  }
};

}  // namespace dtrun::shm
