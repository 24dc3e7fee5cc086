// One of the user's output descriptors: a terminal, pipe, file or socket.
//
// Owned by a Console. Write is for its writer thread; other methods: any thread. A write waits for a slow
// reader but can be cancelled. The flags of the descriptor do not change, because other programs share it: a
// pipe or terminal is reopened in non-blocking mode. REQUIRES, for Write: SIGPIPE is blocked in the thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string_view>

#include "core/base/fd.h"

namespace dtrun::output {

class Sink {
 public:
  using Clock = std::chrono::steady_clock;

  // `fd` remains the caller's.
  explicit Sink(int fd);

  bool terminal() const { return terminal_; }
  // Width of a terminal; 80 if unknown.
  int columns() const;

  // Returns 0, ECANCELED once *stop is set, or the errno value that ends all writing. `*bytes` keeps the
  // unwritten rest. `*taken` is set to the time, in ticks of Clock, of each successful write.
  int Write(std::string_view* bytes, const std::atomic<bool>& stop, std::atomic<Clock::rep>* taken) const;

 private:
  enum class Kind {
    kPlain,    // never blocks on a reader: files, /dev/null
    kOwn,      // `own_` is non-blocking
    kSocket,   // MSG_DONTWAIT on each call
    kBorrowed  // could not be reopened: polled, and written in small pieces
  };

  long TryWrite(std::string_view bytes) const;

  int fd_;
  UniqueFd own_;
  Kind kind_ = Kind::kPlain;
  bool terminal_ = false;
  std::size_t piece_ = 0;  // for kBorrowed
};

}  // namespace dtrun::output
