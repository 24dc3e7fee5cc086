#include "core/base/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/base/number.h"
#include "core/base/text.h"

namespace dtrun {
namespace {

constexpr int kHighestPort = 65535;
constexpr std::size_t kMostPortDigits = 5;

Error NoHost(std::string text) { return Error{DTRUN_INVALID_ARGUMENT, std::move(text)}; }

bool ZoneCharacter(char c) { return IsLetterOrDigit(c) || c == '.' || c == '-' || c == '_'; }

}  // namespace

bool IsIpv6(std::string_view text) {
  const std::string address(text.substr(0, text.find('%')));
  const std::string_view zone = text.substr(address.size());
  in6_addr parsed{};
  return ::inet_pton(AF_INET6, address.c_str(), &parsed) == 1 && zone != "%" &&
         std::ranges::all_of(zone.substr(zone.empty() ? 0 : 1), ZoneCharacter);
}

Result<HostParts> SplitHost(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::string user(text.substr(0, at == text.npos ? 0 : at + 1));
  const std::string_view rest = text.substr(user.size());
  HostParts parts;
  if (rest.starts_with('[')) {
    const std::size_t close = rest.find(']');
    if (close == rest.npos) return NoHost(fmt::format("'{}' lacks the closing ']'", text));
    const std::string_view address = rest.substr(1, close - 1), after = rest.substr(close + 1);
    if (!IsIpv6(address)) {
      return NoHost(
          fmt::format("'{}': '{}' is not an IPv6 address; only those are in brackets", text, address));
    }
    if (!after.empty() && after.front() != ':') {
      return NoHost(fmt::format("'{}' has '{}' after ']'; write '{}[{}]:4'", text, after, user, address));
    }
    parts = {user + std::string(address), {}, true};
    if (!after.empty()) parts.after = after.substr(1);
    return parts;
  }
  const std::size_t colon = rest.find(':');
  if (colon == rest.rfind(':')) {
    parts.host = user + std::string(rest.substr(0, colon));
    if (colon != rest.npos) parts.after = rest.substr(colon + 1);
    return parts;
  }
  if (!IsIpv6(rest)) {
    return NoHost(
        fmt::format("'{}' has several colons and is not an IPv6 address, which is in brackets before a "
                    "colon: '[fe80::1]:4'",
                    text));
  }
  parts.host = text;
  return parts;
}

Result<Endpoint> ParseEndpoint(std::string_view text, int least) {
  const Result<HostParts> parts = SplitHost(text);
  if (!parts) return parts.error();
  if (parts->host.empty()) return NoHost(fmt::format("'{}' has no host before its colon", text));
  Endpoint endpoint{parts->host, {}};
  if (!parts->after) return endpoint;
  const std::string& digits = *parts->after;
  if (digits.size() <= kMostPortDigits && IsDigits(digits)) endpoint.port = NumberOf<int>(digits);
  if (endpoint.port && *endpoint.port >= least && *endpoint.port <= kHighestPort) return endpoint;
  return NoHost(
      fmt::format("'{}' has no port from {} to {} after its last colon", text, least, kHighestPort));
}

std::string Bracketed(const std::string& host) {
  return host.find(':') == host.npos ? host : "[" + host + "]";
}

std::string EndpointText(const std::string& host, const std::string& port) {
  return Bracketed(host) + ":" + port;
}

}  // namespace dtrun
