#include "core/base/port_range.h"

#include <fmt/format.h>
#include <netinet/in.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>

#include "core/base/number.h"

namespace dtrun {
namespace {

std::atomic<int> first_port{0}, last_port{0};

}  // namespace

Result<PortRange> ParsePortRange(const std::string& text) {
  if (text.empty()) return PortRange{};
  PortRange range;
  std::string_view rest = text;
  range.first = TakeNumber<int>(&rest).value_or(0);
  if (rest.starts_with('-')) {
    range.last = NumberOf<int>(rest.substr(1)).value_or(0);
    if (range.first >= 1 && range.first <= range.last && range.last <= 65535) return range;
  }
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("'{}' is not a range of ports; write FIRST-LAST, such as 40000-40100", text)};
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
  return Error{DTRUN_SYSTEM, fmt::format("{}: every port of cluster.port_range ({}) is taken; give it more "
                                         "ports, or end what has them (`ss -ltnp`)",
                                         action, ToText(range))};
}

}  // namespace dtrun
