// Structs passed by a plugin: of any size, with flags that may require support (rules S2, S6 and S7 of
// docs/abi.md). Pure; any thread.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "dtrun/plugin/failure.hpp"

namespace dtrun::plugin {

// An array of sized structs; the stride is the first element's struct_size.
template <class T>
class GivenArray {
 public:
  explicit GivenArray(const T* first)
      : first_(reinterpret_cast<const char*>(first)), stride_(first == nullptr ? 0 : first->struct_size) {}

  std::size_t stride() const { return stride_; }
  // Whether the stride is that of an ABI: at least the size at 1.0, and aligned.
  bool valid() const { return stride_ >= sdk::internal::kFloor<T> && stride_ % alignof(T) == 0; }
  // A full-size copy. REQUIRES: valid()
  T operator[](std::uint64_t index) const {
    return sdk::internal::ReadStruct(reinterpret_cast<const T*>(first_ + index * stride_));
  }

 private:
  const char* const first_;
  const std::size_t stride_;
};

// The error for a struct that is smaller than at ABI 1.0, as a clause; empty: it is not. `name`:
// "dtrun_process".
template <class T>
std::string TooSmall(const T* given, const char* name) {
  if (given->struct_size >= sdk::internal::kFloor<T>) return {};
  return fmt::format("{} has a struct_size of {}, and ABI 1.0 has {}", name, given->struct_size,
                     sdk::internal::kFloor<T>);
}

// The error for `flags`, as a clause; empty if all flags that require support are in `known`.
inline std::string UnknownFlags(std::uint32_t flags, std::uint32_t known) {
  if ((flags & DTRUN_FLAGS_MUST_UNDERSTAND & ~known) == 0) return {};
  return fmt::format("its flags are {:#x}, of which this dtrun does not know all", flags);
}

}  // namespace dtrun::plugin
