// Compares secrets. Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace dtrun {

// In constant time, wherever the first difference is; the sizes are no secret.
inline bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace dtrun
