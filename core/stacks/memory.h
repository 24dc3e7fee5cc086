// The memory of another process, copied out piece by piece. Nothing of it is trusted: every copy has a size
// that the reader chose, an address that is not mapped is an answer and not a fault, and all copies together
// are bounded, whatever the structures in it lead to.
//
// One for each look; one thread at a time. A copy waits for pages that are not in memory, so call it where
// waiting is allowed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace dtrun::stacks {

class Memory {
 public:
  // A program of 256 threads that are 100 calls deep takes some 300,000 copies and 20 MiB.
  static constexpr int kMostCopies = 1 << 20;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  explicit Memory(pid_t pid) : pid_(pid) {}
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // False where it cannot be read, and once it has been read too much.
  bool Copy(std::uint64_t address, void* to, std::size_t size) const;
  // Empty when it cannot be read whole.
  std::string Bytes(std::uint64_t address, std::size_t size) const;

  template <class T>
  std::optional<T> Read(std::uint64_t address) const {
    T value{};
    if (!Copy(address, &value, sizeof value)) return std::nullopt;
    return value;
  }
  // 0 when it cannot be read.
  std::uint64_t Pointer(std::uint64_t address) const { return Read<std::uint64_t>(address).value_or(0); }

  pid_t pid() const { return pid_; }

 private:
  // All `size` bytes, or false.
  virtual bool CopyFrom(std::uint64_t address, void* to, std::size_t size) const = 0;

  const pid_t pid_;
  mutable int copies_ = 0;
  mutable std::size_t bytes_ = 0;
};

class ProcessMemory final : public Memory {
 public:
  explicit ProcessMemory(pid_t pid) : Memory(pid) {}

 private:
  bool CopyFrom(std::uint64_t address, void* to, std::size_t size) const override;
};

}  // namespace dtrun::stacks
