// Memory that several processes map: a memfd, found by its owner's pid and descriptor.
//
// It never has a name in a file system, so no kill leaves anything behind and the size of /dev/shm does not
// matter (docs/decisions/005-shared-memory.md). Move-only; the mapping lives as long as the object, the pages
// as long as any process maps them. One thread at a time creates or moves it; its users synchronise access to
// the memory.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/base/result.h"
#include "core/plugin/host.h"

namespace dtrun::shm {

class Memory {
 public:
  // Zeroed. `name` is what /proc/<pid>/maps shows. Throws sdk::Failure.
  static Memory Create(const char* name, std::size_t bytes);
  // Maps all of descriptor `fd` of process `pid`. Throws sdk::Failure.
  static Memory Open(pid_t pid, int fd);

  Memory() = default;
  Memory(Memory&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        fd_(std::exchange(other.fd_, -1)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Memory();

  std::byte* data() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  int fd() const { return fd_; }
  // Closes the descriptor; the mapping stays. Later Opens by others fail.
  void CloseFd();
  // Returns the pages to the system, also for processes that still map them.
  void Drop() const;

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  int fd_ = -1;
};

// Whether the ranks of a host can map each other's memory. Ranks in separate containers cannot: they have
// different user or PID namespaces, or do not see the host's /proc.
//
// Owned by the runtime and used before it makes the world. One thread.
class Reach {
 public:
  // Why `rank` cannot share memory with the first rank of `host` that called this on `kv`; empty: it can. The
  // first rank's sample can be opened while its Reach lives.
  Result<std::string> WhyNot(dtrun_kv& kv, int rank, int host);

 private:
  Memory sample_;
};

}  // namespace dtrun::shm
