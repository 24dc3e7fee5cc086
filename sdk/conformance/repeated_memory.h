// Address space of many gibibytes over few mebibytes of memory: the same 16 MiB again and again.
//
// For buffers with content that repeats with that period; a write shows in every repetition. Unmapped
// with the object. Any thread.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace dtrun::conformance {

class RepeatedMemory {
 public:
  explicit RepeatedMemory(std::size_t bytes) : bytes_(bytes) {
    const int file = memfd_create("repeated", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, kFileBytes) != 0) throw std::runtime_error("cannot make a memory file");
    void* const base = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) throw std::runtime_error("cannot reserve addresses");
    base_ = static_cast<unsigned char*>(base);
    for (std::size_t at = 0; at < bytes; at += kFileBytes) {
      const std::size_t size = std::min<std::size_t>(kFileBytes, bytes - at);
      if (mmap(base_ + at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
        throw std::runtime_error("cannot map a memory file");
      }
    }
    close(file);
  }
  ~RepeatedMemory() { munmap(base_, bytes_); }
  RepeatedMemory(const RepeatedMemory&) = delete;
  RepeatedMemory& operator=(const RepeatedMemory&) = delete;
  unsigned char* data() const { return base_; }

  static constexpr std::size_t kFileBytes = 16 << 20;

 private:
  const std::size_t bytes_;
  unsigned char* base_ = nullptr;
};

}  // namespace dtrun::conformance
