// Address space of many gibibytes over few mebibytes of memory: the same 16 MiB again and again, and an end
// of its own, in which a write is seen that was left out.
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
    end_ = (bytes - std::min(bytes, kEndBytes)) / kPage * kPage;
    if (mmap(base_ + end_, bytes - end_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED)
      throw std::runtime_error("cannot map the end of the memory");
  }
  ~RepeatedMemory() { munmap(base_, bytes_); }
  RepeatedMemory(const RepeatedMemory&) = delete;
  RepeatedMemory& operator=(const RepeatedMemory&) = delete;
  unsigned char* data() const { return base_; }
  // `content` gives the byte at a place within the period.
  template <class Content>
  void Fill(Content&& content) const {
    ForEach([&](std::size_t i) { base_[i] = content(i % kFileBytes); });
  }
  // How many bytes differ; each repetition counts once.
  template <class Content>
  std::size_t Wrong(Content&& content) const {
    std::size_t wrong = 0;
    ForEach([&](std::size_t i) { wrong += base_[i] == content(i % kFileBytes) ? 0 : 1; });
    return wrong;
  }

  static constexpr std::size_t kFileBytes = 16 << 20;

 private:
  static constexpr std::size_t kPage = 4096, kEndBytes = 64 << 10;

  template <class Visit>
  void ForEach(Visit&& visit) const {
    for (std::size_t i = 0; i < std::min<std::size_t>(kFileBytes, end_); ++i) visit(i);
    for (std::size_t i = end_; i < bytes_; ++i) visit(i);
  }

  const std::size_t bytes_;
  std::size_t end_ = 0;  // where the end of its own begins
  unsigned char* base_ = nullptr;
};

}  // namespace dtrun::conformance
