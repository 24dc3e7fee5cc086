// One of the user's descriptors: a terminal, a pipe, a file, a socket.
//
// Owned by a Console. Write is for its writer thread; the rest may be called by any thread.
// A write waits for a slow reader but can be called off, without touching the flags of the
// descriptor, which other programs share: a pipe or terminal is opened anew in
// non-blocking mode. REQUIRES, for Write: SIGPIPE is blocked in the thread.
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

  // `fd` stays the caller's.
  explicit Sink(int fd);

  bool terminal() const { return terminal_; }
  // Of a terminal; 80 when it does not know.
  int columns() const;

  // Returns 0, ECANCELED once *stop is set, or the errno value that ends all writing; `*bytes` keeps what was
  // not taken. `*taken` becomes the time, in ticks of Clock, whenever the reader took something.
  int Write(std::string_view* bytes, const std::atomic<bool>& stop, std::atomic<Clock::rep>* taken) const;

 private:
  enum class Kind {
    kPlain,    // never waits for a reader: files, /dev/null
    kOwn,      // `own_` is non-blocking
    kSocket,   // each call says that it does not wait
    kBorrowed  // could not be opened anew: polled, and written in small pieces
  };

  long TryWrite(std::string_view bytes) const;

  int fd_;
  UniqueFd own_;
  Kind kind_ = Kind::kPlain;
  bool terminal_ = false;
  std::size_t piece_ = 0;  // for kBorrowed
};

}  // namespace dtrun::output
