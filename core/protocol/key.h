// The secret of a job: 32 bytes that root and agents share, and nobody else knows.
//
// It has no text form here, so that it gets into no log by accident; it is wiped when
// destroyed. A value; any thread.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::protocol {

class Key {
 public:
  static constexpr std::size_t kBytes = 32;

  // 64 hex digits, as store::NewJobKey gives them. The error never quotes them.
  static Result<Key> FromHex(std::string_view digits);

  // Made from a text that all hosts know, and only as secret as that.
  static Key FromText(std::string_view text);

  // The key of one job, made from one that serves several.
  Key For(std::string_view job) const;

  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  ~Key();

  const unsigned char* data() const { return bytes_.data(); }

 private:
  Key() = default;
  std::array<unsigned char, kBytes> bytes_{};
};

// The end of a sentence about keys that differ: where ours comes from, and what to do. Empty when no user has
// put it there.
std::string HowToShare(std::string_view key_origin);

}  // namespace dtrun::protocol
