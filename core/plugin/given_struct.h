// Structs that a plugin gives: of any size, with flags that may have to be understood (rules S2, S6 and S7 of
// docs/abi.md). Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "dtrun/plugin/failure.hpp"

namespace dtrun::plugin {

// An array of sized structs, whose stride is the size that the first one says.
template <class T>
class GivenArray {
 public:
  explicit GivenArray(const T* first)
      : first_(reinterpret_cast<const char*>(first)), stride_(first == nullptr ? 0 : first->struct_size) {}

  std::size_t stride() const { return stride_; }
  // Whether elements can lie so: each has its size and its flags.
  bool valid() const { return stride_ >= 2 * sizeof(std::uint32_t) && stride_ % alignof(T) == 0; }
  // A full-size copy. REQUIRES: valid()
  T operator[](std::uint64_t index) const {
    return sdk::internal::ReadStruct(reinterpret_cast<const T*>(first_ + index * stride_));
  }

 private:
  const char* const first_;
  const std::size_t stride_;
};

// What is wrong with `flags`, as a clause; empty when all that must be understood are in `known`.
std::string UnknownFlags(std::uint32_t flags, std::uint32_t known);

}  // namespace dtrun::plugin
