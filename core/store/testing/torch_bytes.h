// The bytes that torch's client writes, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dtrun::store::testing {

template <typename T>
std::string Raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string Byte(int value) { return Raw(static_cast<std::uint8_t>(value)); }
inline std::string Count(std::uint64_t value) { return Raw(value); }
inline std::string Number(std::int64_t value) { return Raw(value); }
inline std::string Number32(std::uint32_t value) { return Raw(value); }
inline std::string Text(std::string_view text) { return Count(text.size()).append(text); }
inline std::string Validate() { return Byte(0) + Number32(0x3C85F7CE); }

}  // namespace dtrun::store::testing
