// The memory of another process, copied piece by piece. Its content is untrusted: the reader chooses the size
// of every copy, an unmapped address is a result and not a fault, and the total size is bounded, whatever its
// structures point to.
//
// One object per look; one thread at a time. A copy may block on pages that are not in memory, so call it
// only from a thread that may block.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun::stacks {

class Memory {
 public:
  // A program with 256 threads, each 100 calls deep, takes some 300,000 copies and 20 MiB.
  static constexpr int kMostCopies = 1 << 20;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  explicit Memory(pid_t pid) : pid_(pid) {}
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // False if it cannot be read, or if the limits are reached.
  bool Copy(std::uint64_t address, void* to, std::size_t size) const;
  // Empty if it cannot be read completely.
  std::string Bytes(std::uint64_t address, std::size_t size) const;

  template <class T>
  std::optional<T> Read(std::uint64_t address) const {
    T value{};
    if (!Copy(address, &value, sizeof value)) return std::nullopt;
    return value;
  }
  // 0 if it cannot be read.
  std::uint64_t Pointer(std::uint64_t address) const { return Read<std::uint64_t>(address).value_or(0); }

  pid_t pid() const { return pid_; }

 private:
  // Copies all `size` bytes, or returns false.
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

// A line of /proc/PID/maps that names a file.
struct Mapping {
  std::uint64_t begin = 0, end = 0;
  bool first = false;     // the file is mapped from its beginning
  std::string_view path;  // in the text
};
// Those of `maps`, a text in the form of /proc/PID/maps.
std::vector<Mapping> MappingsIn(std::string_view maps);

// The address of the exported symbol in the ELF object mapped at `base`; 0: not found.
std::uint64_t FindSymbol(const Memory& memory, std::uint64_t base, std::string_view name);

}  // namespace dtrun::stacks
