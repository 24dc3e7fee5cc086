// Structs with an inaccessible page behind their last byte, also of another size than these headers'.
//
// A plugin that reads or writes there dies of SIGSEGV, and stderr says of which struct and how far behind it.
// The thread that makes a Guarded owns it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "dtrun/abi.h"
#include "dtrun/abi/structs.h"

namespace dtrun::conformance {

// `bytes` bytes, filled with `kGarbage`; misses nothing but the page behind them.
class GuardedMemory {
 public:
  // `name` is a literal: what it is.
  GuardedMemory(const char* name, std::size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  unsigned char* data() const { return data_; }
  std::size_t size() const { return size_; }

  static constexpr unsigned char kGarbage = 0xa5;

 private:
  unsigned char* pages_;
  std::size_t mapped_;
  unsigned char* data_;
  std::size_t size_;
};

// Names, in the line of a crash, the struct behind which it happened. Call once.
void ExplainCrashesBehindGuards();

// A caller's struct as headers with `bytes` bytes of it would make it: the first members of `value`, or all
// of them and garbage behind.
template <class T>
class Guarded {
 public:
  Guarded(const char* name, const T& value, std::size_t bytes) : memory_(name, bytes) {
    std::memcpy(memory_.data(), &value, std::min(bytes, sizeof(T)));
    const auto size = static_cast<std::uint32_t>(bytes);
    std::memcpy(memory_.data(), &size, sizeof size);
    before_.assign(memory_.data(), memory_.data() + bytes);
  }

  T* get() const { return reinterpret_cast<T*>(memory_.data()); }
  // What it holds now; members that it lacks are zero.
  T Read() const {
    T value{};
    std::memcpy(static_cast<void*>(&value), memory_.data(), std::min(memory_.size(), sizeof(T)));
    return value;
  }

  // "" when struct_size and what lies behind these headers' members are as they were, else what changed.
  std::string Damage() const {
    if (Read().struct_size != memory_.size()) return "its struct_size was changed";
    return Changed(sizeof(T)) ? "something was written behind its members" : "";
  }
  // The same for a struct that the plugin only reads.
  std::string Writes() const { return Changed(0) ? "it was written to" : ""; }

 private:
  bool Changed(std::size_t from) const {
    return from < memory_.size() &&
           std::memcmp(memory_.data() + from, before_.data() + from, memory_.size() - from) != 0;
  }

  GuardedMemory memory_;
  std::vector<unsigned char> before_;
};

// The least size of a struct: that of ABI 1.0, or these headers' where it is of the device draft.
template <class T>
inline constexpr std::size_t kFloor = sizeof(T);
#define DTRUN_FLOOR_OF(type, bytes) \
  template <>                       \
  inline constexpr std::size_t kFloor<type> = bytes;
DTRUN_FLOORS(DTRUN_FLOOR_OF)
#undef DTRUN_FLOOR_OF

// The sizes to try: an old host's, these headers', and a newer one's.
template <class T>
std::vector<std::size_t> Sizes() {
  std::vector<std::size_t> sizes = {kFloor<T>};
  if (sizeof(T) > kFloor<T>) sizes.push_back(sizeof(T));
  sizes.push_back(sizeof(T) + 64);
  return sizes;
}

}  // namespace dtrun::conformance
