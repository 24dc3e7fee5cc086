#include "core/hosts/host_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/endpoint.h"
#include "core/base/number.h"
#include "core/base/text.h"

namespace dtrun::hosts {
namespace {

constexpr std::size_t kMaxNameBytes = 253;  // RFC 1035, 2.3.4: 255 octets on the wire

Error Bad(std::string text) { return Error{DTRUN_INVALID_ARGUMENT, std::move(text)}; }

bool NameCharacter(char c) { return IsLetterOrDigit(c) || c == '.' || c == '-' || c == '_'; }

Status CheckPlainName(std::string_view name) {
  if (name.empty()) return Bad("the host's name is empty");
  if (name.find(':') != std::string_view::npos && IsIpv6(name)) return {};
  const auto wrong = std::ranges::find_if_not(name, NameCharacter);
  if (wrong != name.end()) {
    const auto byte = static_cast<unsigned char>(*wrong);
    if (*wrong == ' ' || *wrong == ',')
      return Bad(fmt::format("a host's name has no {}; write --hosts a,b, or in a hostfile one host a line",
                             *wrong == ' ' ? "space" : "','"));
    if (*wrong == '[')
      return Bad(fmt::format("a host's name has no '['; scontrol show hostnames '{}' lists the names", name));
    const std::string shown =
        byte > 0x20 && byte < 0x7f ? std::string(1, *wrong) : fmt::format("\\x{:02x}", byte);
    return Bad(
        fmt::format("a host's name has no '{}'; it is made of letters, digits, '.', '-' and '_'", shown));
  }
  if (name.front() == '-') {  // a remote shell would take it for an option
    return Bad(fmt::format("host '{}' starts with '-'; it starts with a letter or a digit", name));
  }
  if (name.size() > kMaxNameBytes) {
    return Bad(fmt::format("a host's name has {} bytes; at most {} are allowed", name.size(), kMaxNameBytes));
  }
  return {};
}

// All slots of a repeated host, as one item.
std::string InOne(const std::vector<std::string>& items, const std::string& name) {
  int slots = 0;
  for (const std::string& item : items) {
    const auto host = ParseHost(item);
    if (host && host->name == name) slots = std::min(slots + host->slots.value_or(1), kMaxSlots);
  }
  return ToText({name, slots});
}

}  // namespace

Result<int> ParseSlots(std::string_view text) {
  const int number = NumberOf<int>(text).value_or(0);
  if (number < 1 || number > kMaxSlots) {
    const bool zero = NumberOf<int>(text) == 0;
    return Bad(fmt::format("'{}' is not a number of slots; expected 1 to {}{}", text, kMaxSlots,
                           zero ? "; to run no rank there, leave the host out of the list" : ""));
  }
  return number;
}

Status CheckSize(std::size_t hosts, std::int64_t ranks) {
  if (ranks <= kMaxRanks) return {};
  return Bad(fmt::format(
      "{} ranks on {} host{}; a job has at most {} ranks: use fewer hosts, or fewer ranks on each", ranks,
      hosts, hosts == 1 ? "" : "s", kMaxRanks));
}

Status CheckHostName(std::string_view name) {
  const auto at = name.find('@');
  if (at == std::string_view::npos) return CheckPlainName(name);
  Status user = CheckPlainName(name.substr(0, at));
  return user ? CheckPlainName(name.substr(at + 1)) : user;
}

Result<HostSlots> ParseHost(std::string_view text) {
  const Result<HostParts> parts = SplitHost(text);
  if (!parts) return parts.error();
  HostSlots host{parts->host, {}};
  // The last group of an IPv6 address looks like a number of slots.
  if (!parts->bracketed && IsIpv6(host.name.substr(host.name.find('@') + 1))) {
    return Bad(fmt::format(
        "'{}' has several colons; write an IPv6 address in brackets: '[fe80::1]' or '[fe80::1]:4'", text));
  }
  if (Status name = CheckHostName(host.name); !name) return name.error();
  if (!parts->after) return host;
  const auto slots = ParseSlots(*parts->after);
  if (!slots) return slots.error();
  host.slots = *slots;
  return host;
}

std::string ToText(const HostSlots& host) {
  const std::size_t begin = host.name.find('@') + 1;  // after the optional user
  std::string text = host.name.substr(0, begin) + Bracketed(host.name.substr(begin));
  if (host.slots) text += fmt::format(":{}", *host.slots);
  return text;
}

Result<std::vector<HostSlots>> ParseHosts(const std::vector<std::string>& items) {
  if (items.empty())
    return Bad("the list of hosts is empty; name one, or leave the list out for this machine");
  if (items.size() > kMaxHosts)
    return Bad(fmt::format("{} hosts; at most {} are served", items.size(), kMaxHosts));
  std::vector<HostSlots> hosts;
  std::map<std::string, std::size_t> seen;  // name in lower case -> item, counted from 1
  for (const std::string& item : items) {
    const std::size_t number = hosts.size() + 1;
    auto host = ParseHost(item);
    if (!host) return Bad(fmt::format("item {}: {}", number, host.error().text));
    const auto [before, fresh] = seen.emplace(Lowercase(host->name), number);
    if (!fresh) {
      return Bad(fmt::format("items {} and {} are the same host '{}'; name it once, with its slots: {}",
                             before->second, number, host->name, InOne(items, host->name)));
    }
    hosts.push_back(std::move(*host));
  }
  return hosts;
}

bool NaturallyBefore(std::string_view a, std::string_view b) {
  // Takes the leading number off `text`, without leading zeros.
  const auto number = [&](std::string_view& text) {
    std::string_view digits =
        text.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(text, IsDigit) - text.begin()));
    text.remove_prefix(digits.size());
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    return digits;
  };
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a[0]) && IsDigit(b[0])) {
      const std::string_view one = number(a), other = number(b);
      if (one.size() != other.size()) return one.size() < other.size();
      if (one != other) return one < other;
      continue;
    }
    if (a[0] != b[0]) return a[0] < b[0];
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.size() != b.size() ? a.size() < b.size() : whole_a < whole_b;
}

}  // namespace dtrun::hosts
