#include "core/hosts/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/base/number.h"
#include "core/base/text.h"

namespace dtrun::hosts {
namespace {

constexpr std::size_t kMostShown = 8;

// What a text says of one host; no slots: all of them.
using Slots = std::set<int>;
using Wishes = std::map<const HostSlots*, Slots>;

Error Wrong(std::string text) { return Error{DTRUN_INVALID_ARGUMENT, std::move(text)}; }

std::string_view WithoutUser(std::string_view name) { return name.substr(name.rfind('@') + 1); }

Result<Slots> ReadSlots(std::string_view text, const HostSlots& host) {
  Slots slots;
  for (const std::string_view item : Split(text, ',')) {
    const auto slot = NumberOf<int>(Trim(item));
    if (!slot || *slot < 0 || *slot >= kMaxSlots)
      return Wrong(fmt::format("slot '{}' of host '{}' is not a number from 0 to {}; write {}:0,1", item,
                               host.name, kMaxSlots - 1, host.name));
    if (host.slots && *slot >= *host.slots) {
      return Wrong(fmt::format("host '{}' has no slot {}: it has {}, {}", host.name, *slot, *host.slots,
                               *host.slots == 1 ? "slot 0" : fmt::format("0 to {}", *host.slots - 1)));
    }
    slots.insert(*slot);
  }
  return slots;
}

// As in DeepSpeed, what is said of a host in several places adds up, and slots win over its name alone.
Result<Wishes> Read(const std::vector<HostSlots>& hosts, std::string_view text, std::string_view source) {
  Wishes wishes;
  for (const std::string_view item : Split(text, '@')) {
    const std::string_view one = Trim(item);
    std::size_t colon = one.starts_with('[') ? one.find(']') : 0;  // an IPv6 address
    colon = colon == one.npos ? one.npos : one.find(':', colon);
    std::string_view name = one.substr(0, colon);
    if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
    if (name.empty())
      return Wrong(
          "a host has no name; write NAME or NAME:SLOT,SLOT, with @ between hosts: worker-0:2,3@worker-1");
    const HostSlots* host = FindHost(hosts, name);
    if (host == nullptr) {
      return Wrong(fmt::format("host '{}' is not in {}{}", name, source,
                               name.find(',') == name.npos ? HostsInstead(hosts, name)
                                                           : "; write @ between hosts: worker-0@worker-1"));
    }
    Slots& slots = wishes[host];
    if (colon == one.npos) continue;
    auto more = ReadSlots(one.substr(colon + 1), *host);
    if (!more) return more.error();
    slots.merge(*more);
  }
  return wishes;
}

void Add(const HostSlots& host, const std::optional<Slots>& slots, Selection* to) {
  to->hosts.push_back(host);
  if (!slots) return;
  to->hosts.back().slots = static_cast<int>(slots->size());
  to->gpus[host.name] = fmt::format("{}", fmt::join(*slots, ","));
}

std::optional<Slots> AllOf(const HostSlots& host) {
  if (!host.slots) return std::nullopt;
  Slots all;
  for (int slot = 0; slot < *host.slots; ++slot) all.insert(all.end(), slot);
  return all;
}

}  // namespace

Result<Selection> Include(const std::vector<HostSlots>& hosts, std::string_view text,
                          std::string_view source) {
  const auto wishes = Read(hosts, text, source);
  if (!wishes) return wishes.error();
  Selection out;
  for (const HostSlots& host : hosts) {
    const auto wish = wishes->find(&host);
    if (wish == wishes->end()) continue;
    Add(host, wish->second.empty() ? AllOf(host) : wish->second, &out);
  }
  return out;
}

Result<Selection> Exclude(const std::vector<HostSlots>& hosts, std::string_view text,
                          std::string_view source) {
  const auto wishes = Read(hosts, text, source);
  if (!wishes) return wishes.error();
  Selection out;
  for (const HostSlots& host : hosts) {
    const auto wish = wishes->find(&host);
    if (wish == wishes->end()) {
      Add(host, std::nullopt, &out);
      continue;
    }
    if (wish->second.empty()) continue;
    std::optional<Slots> left = AllOf(host);
    if (!left) {
      return Wrong(fmt::format(
          "{} does not say how many slots host '{}' has, of which {} would be left out; name those "
          "to use: --include {}:0,1",
          source, host.name, fmt::join(wish->second, ","), host.name));
    }
    std::erase_if(*left, [&](int slot) { return wish->second.contains(slot); });
    if (!left->empty()) Add(host, left, &out);
  }
  if (out.hosts.empty()) return Wrong(fmt::format("it leaves no host of {}; leave out fewer", source));
  return out;
}

const HostSlots* FindHost(const std::vector<HostSlots>& hosts, std::string_view name) {
  auto found = std::ranges::find(hosts, name, &HostSlots::name);
  if (found == hosts.end())
    found =
        std::ranges::find_if(hosts, [&](const HostSlots& host) { return WithoutUser(host.name) == name; });
  return found == hosts.end() ? nullptr : &*found;
}

std::string HostsInstead(const std::vector<HostSlots>& hosts, std::string_view name) {
  std::vector<std::string> names;
  for (const HostSlots& host : hosts) names.push_back(host.name);
  if (const auto nearest = Nearest(name, names)) return fmt::format("; did you mean '{}'?", *nearest);
  const std::size_t more = names.size() > kMostShown ? names.size() - kMostShown : 0;
  names.resize(names.size() - more);
  return fmt::format("; there {} {}{}", names.size() == 1 ? "is" : "are", fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

Status CheckGpuList(std::string_view list) {
  if (Trim(list).empty() || Trim(list) == "-1") return {};
  std::set<std::string_view> seen;
  for (const std::string_view item : Split(list, ',')) {
    const std::string_view one = Trim(item);
    const bool uuid = (one.starts_with("GPU-") || one.starts_with("MIG-")) && one.size() > 4 &&
                      one.find_first_of(" \t") == one.npos;
    if (!IsDigits(one) && !uuid)
      return Wrong(fmt::format("'{}' is no GPU: write indices or UUIDs (GPU-…, MIG-…), as in \"0,1\"", one));
    if (!seen.insert(one).second)
      return Wrong(fmt::format("'{}' stands twice; CUDA then shows no GPU at all", one));
  }
  return {};
}

}  // namespace dtrun::hosts
