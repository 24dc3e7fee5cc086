// The memory of another process, copied out piece by piece. Nothing of it is trusted: every copy has a size
// that the reader chose, and an address that is not mapped is an answer, not a fault.
//
// A value; any thread. A copy waits for pages that are not in memory, so call it where waiting is allowed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace dtrun::stacks {

class Memory {
 public:
  explicit Memory(pid_t pid) : pid_(pid) {}

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
  pid_t pid_;
};

}  // namespace dtrun::stacks
