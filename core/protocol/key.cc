#include "core/protocol/key.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <string.h>

#include <cstdlib>

#include "core/base/text.h"

namespace dtrun::protocol {
namespace {

int Digit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Result<Key> Key::FromHex(std::string_view digits) {
  const auto refuse = [](const std::string& problem) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("the key of the job {}; it is {} hexadecimal digits, the same on every host",
                             problem, 2 * kBytes)};
  };
  if (digits.size() != 2 * kBytes) return refuse(fmt::format("has {} characters", digits.size()));
  Key key;
  for (std::size_t i = 0; i < kBytes; ++i) {
    const int high = Digit(digits[2 * i]), low = Digit(digits[2 * i + 1]);
    if (high < 0 || low < 0) {
      return refuse(fmt::format("has something else than a hexadecimal digit at character {} or {}",
                                2 * i + 1, 2 * i + 2));
    }
    key.bytes_[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return key;
}

Key Key::FromText(std::string_view text) {
  Key key;
  static_assert(kBytes == SHA256_DIGEST_LENGTH);
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), key.bytes_.data());
  return key;
}

Key Key::For(std::string_view job) const {
  Key key;
  unsigned size = 0;
  const bool done =
      HMAC(EVP_sha256(), bytes_.data(), kBytes, reinterpret_cast<const unsigned char*>(job.data()),
           job.size(), key.bytes_.data(), &size) != nullptr;
  if (!done || size != kBytes) std::abort();  // fails only without memory
  return key;
}

std::string HowToShare(std::string_view key_origin) {
  if (key_origin.empty()) return {};
  return fmt::format("; ours comes from {}: give every host the same", key_origin);
}

Key::~Key() { ::explicit_bzero(bytes_.data(), bytes_.size()); }

}  // namespace dtrun::protocol
