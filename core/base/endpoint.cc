#include "core/base/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>

#include "core/base/number.h"
#include "core/base/text.h"

namespace dtrun {
namespace {

constexpr int kHighestPort = 65535;
constexpr std::size_t kMostPortDigits = 5;

bool ZoneCharacter(char c) { return IsLetterOrDigit(c) || c == '.' || c == '-' || c == '_'; }

std::atomic<int> first_port{0}, last_port{0};

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
    if (close == rest.npos) return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' lacks the closing ']'", text);
    const std::string_view address = rest.substr(1, close - 1), after = rest.substr(close + 1);
    if (!IsIpv6(address)) {
      return Error::Of(DTRUN_INVALID_ARGUMENT,
                       "'{}': '{}' is not an IPv6 address; only those are in brackets", text, address);
    }
    if (!after.empty() && after.front() != ':') {
      return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' has '{}' after ']'; write '{}[{}]:4'", text, after, user,
                       address);
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
    return Error::Of(DTRUN_INVALID_ARGUMENT,
                     "'{}' has several colons and is not an IPv6 address, which is in brackets before a "
                     "colon: '[fe80::1]:4'",
                     text);
  }
  parts.host = text;
  return parts;
}

Result<Endpoint> ParseEndpoint(std::string_view text, int least) {
  const Result<HostParts> parts = SplitHost(text);
  if (!parts) return parts.error();
  if (parts->host.empty())
    return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' has no host before its colon", text);
  Endpoint endpoint{parts->host, {}};
  if (!parts->after) return endpoint;
  const std::string& digits = *parts->after;
  if (digits.size() <= kMostPortDigits && IsDigits(digits)) endpoint.port = NumberOf<int>(digits);
  if (endpoint.port && *endpoint.port >= least && *endpoint.port <= kHighestPort) return endpoint;
  return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' has no port from {} to {} after its last colon", text, least,
                   kHighestPort);
}

std::string Bracketed(const std::string& host) {
  return host.find(':') == host.npos ? host : "[" + host + "]";
}

std::string EndpointText(const std::string& host, const std::string& port) {
  return Bracketed(host) + ":" + port;
}

Result<PortRange> ParsePortRange(const std::string& text) {
  if (text.empty()) return PortRange{};
  PortRange range;
  std::string_view rest = text;
  range.first = TakeNumber<int>(&rest).value_or(0);
  if (rest.starts_with('-')) {
    range.last = NumberOf<int>(rest.substr(1)).value_or(0);
    if (range.first >= 1 && range.first <= range.last && range.last <= 65535) return range;
  }
  return Error::Of(DTRUN_INVALID_ARGUMENT,
                   "'{}' is not a range of ports; write FIRST-LAST, such as 40000-40100", text);
}

std::string ToText(const PortRange& range) {
  return range.last == 0 ? "" : fmt::format("{}-{}", range.first, range.last);
}

void UsePortRange(const PortRange& range) {
  first_port = range.first;
  last_port = range.last;
}

PortRange UsedPortRange() { return {first_port, last_port}; }

int BindInRange(int socket, const sockaddr* address, socklen_t size) {
  sockaddr_storage wanted{};
  if (size > sizeof wanted) return EINVAL;
  std::memcpy(&wanted, address, size);
  // The port has the same offset in both families.
  auto* const port = &reinterpret_cast<sockaddr_in*>(&wanted)->sin_port;
  const PortRange range = UsedPortRange();
  const bool inet = address->sa_family == AF_INET || address->sa_family == AF_INET6;
  if (!inet || *port != 0 || range.last == 0) return ::bind(socket, address, size) == 0 ? 0 : errno;
  const int count = range.last - range.first + 1;
  // Start at a random port, so that jobs that start together seldom collide.
  std::random_device random;
  const int begin = std::uniform_int_distribution<int>(0, count - 1)(random);
  for (int i = 0; i < count; ++i) {
    *port = htons(static_cast<std::uint16_t>(range.first + (begin + i) % count));
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&wanted), size) == 0) return 0;
    if (errno != EADDRINUSE && errno != EACCES) return errno;
  }
  return EADDRINUSE;
}

Error NoFreePort(std::string_view action, int number) {
  const PortRange range = UsedPortRange();
  if (number != EADDRINUSE || range.last == 0) return Error::System(action, number);
  return Error::Of(DTRUN_SYSTEM,
                   "{}: every port of cluster.port_range ({}) is taken; give it more "
                   "ports, or end what has them (`ss -ltnp`)",
                   action, ToText(range));
}

}  // namespace dtrun
