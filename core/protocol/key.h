// The secret of a job: 32 bytes shared only by root and agents.
//
// It has no text form here, so that it cannot leak into a log by accident. Its memory is wiped on
// destruction. A value; any thread.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::protocol {

class Key {
 public:
  static constexpr std::size_t kBytes = 32;

  // 64 hex digits, as returned by store::NewJobKey. The error never quotes them.
  static Result<Key> FromHex(std::string_view digits);

  // Derived from a text that all hosts know, and only as secret as that text.
  static Key FromText(std::string_view text);

  // The key of one job, derived from one that serves several.
  Key For(std::string_view job) const;

  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  ~Key();

  const unsigned char* data() const { return bytes_.data(); }

 private:
  Key() = default;
  std::array<unsigned char, kBytes> bytes_{};
};

// Ends a sentence about mismatched keys: where ours comes from, and what to do. Empty if the key is not from
// the user.
std::string HowToShare(std::string_view key_origin);

}  // namespace dtrun::protocol
