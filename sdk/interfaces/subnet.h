// A network as users write it, "10.0.0.0/16" or "fd00::/64". A value; any thread.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <optional>
#include <string>

namespace dtrun::interfaces {

class Subnet {
 public:
  // Nothing when `text` is not an address, a slash and a length.
  static std::optional<Subnet> Parse(const std::string& text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string::npos) return std::nullopt;
    Subnet subnet;
    if (!Read(text.substr(0, slash), &subnet)) return std::nullopt;
    const std::string length = text.substr(slash + 1);
    if (length.empty() || length.size() > 3 || length.find_first_not_of("0123456789") != std::string::npos)
      return std::nullopt;
    subnet.length_ = std::stoul(length);
    if (subnet.length_ > (subnet.family_ == AF_INET ? 32u : 128u)) return std::nullopt;
    return subnet;
  }

  // `address` is numeric, without a scope.
  bool Has(const std::string& address) const {
    Subnet other;
    if (!Read(address, &other) || other.family_ != family_) return false;
    for (unsigned long bit = 0; bit < length_; ++bit) {
      const unsigned mask = 0x80u >> (bit % 8);
      if ((bytes_[bit / 8] & mask) != (other.bytes_[bit / 8] & mask)) return false;
    }
    return true;
  }

 private:
  static bool Read(const std::string& text, Subnet* to) {
    for (const int family : {AF_INET, AF_INET6}) {
      to->family_ = family;
      if (inet_pton(family, text.c_str(), to->bytes_.data()) == 1) return true;
    }
    return false;
  }

  int family_ = AF_INET;
  std::array<unsigned char, sizeof(in6_addr)> bytes_{};
  unsigned long length_ = 0;
};

}  // namespace dtrun::interfaces
