// dtrun/plugin/hash.hpp - FNV-1a, for names and digests that ranks compare.
//
// Not part of plugin.hpp. Stable between machines and versions; no protection against an
// adversary. A value; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  class Fnv1a {
   public:
    void Add(std::string_view bytes) {
      for (const char byte : bytes) AddByte(static_cast<unsigned char>(byte));
    }
    // Its eight bytes, the lowest first.
    void Add(std::uint64_t number) {
      for (int shift = 0; shift < 64; shift += 8) AddByte(number >> shift & 0xffu);
    }
    std::uint64_t value() const { return hash_; }

   private:
    void AddByte(std::uint64_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }
    std::uint64_t hash_ = 0xcbf29ce484222325u;
  };

}  // namespace v1
}  // namespace dtrun::sdk
