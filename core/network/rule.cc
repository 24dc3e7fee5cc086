#include "core/network/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/number.h"
#include "core/base/text.h"

namespace dtrun::network {
namespace {

constexpr std::size_t kLongestName = 127;  // of an alternative name: ALTIFNAMSIZ minus the terminator
constexpr char kAuto[] = "auto";

// Virtual bridges: networks for a host's virtual machines and containers. Every host has them, often with the
// same address, and they lead to no other host.
constexpr auto kVirtualBridges = std::to_array<std::string_view>(
    {"docker", "podman", "cni", "virbr", "lxcbr", "lxdbr", "vmnet", "vboxnet", "vnet", "nerdctl"});

// Whether `name` begins with `prefix`, and `prefix` does not end within a number of `name`.
bool HasPrefix(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix) || prefix.empty()) return false;
  return name.size() == prefix.size() || !IsDigit(prefix.back()) || !IsDigit(name[prefix.size()]);
}

bool LooksLikeAddress(std::string_view text) {
  return text.find(':') != std::string_view::npos || text.find('/') != std::string_view::npos ||
         (!text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos);
}

Error Wrong(std::string_view entry, std::string_view problem) {
  return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' {}", entry, problem);
}

constexpr std::size_t kMostAddresses = 4;  // per interface and family

// The default addresses of an interface per family: those that are not link-local, otherwise a link-local
// IPv4 address. A link-local IPv6 address has a meaning only on its own host.
std::vector<Address> Usual(const Interface& one) {
  std::vector<Address> out;
  for (const bool v6 : {false, true}) {
    const Address* link_local = nullptr;
    std::size_t count = 0;
    for (const Address& address : one.addresses) {
      if (address.ip.is_v6() != v6 || address.ip.is_loopback()) continue;
      if (address.link_local()) {
        if (!v6 && link_local == nullptr) link_local = &address;
      } else if (++count <= kMostAddresses) {
        out.push_back(address);
      }
    }
    if (count == 0 && link_local != nullptr) out.push_back(*link_local);
  }
  return out;
}

// Why an interface cannot reach other hosts; empty if it may.
std::string Obstacle(const Interface& one) {
  if (!one.up) return "is down";
  if (!one.carrier) return "has no carrier";
  if (one.addresses.empty()) return "has no address";
  if (!Usual(one).empty()) return "";
  return one.kind == Kind::kLoopback ? "is loopback"
                                     : "has only link-local IPv6 addresses, which other hosts cannot use";
}

Candidate Make(const Interface& one, const Address& address) {
  Candidate out;
  out.interface = one.name;
  out.index = one.index;
  out.kind = one.kind;
  out.address = address;
  const auto first = std::ranges::find_if(one.addresses, [&](const Address& other) {
    return other.ip.is_v6() == address.ip.is_v6() && !(other.ip.is_v6() && other.link_local());
  });
  out.first_address = first != one.addresses.end() && first->ip == address.ip;
  out.default_route = one.default_route;
  out.mtu = one.mtu;
  out.speed_mbps = one.speed_mbps;
  out.rdma = one.rdma;
  return out;
}

}  // namespace

std::string Candidate::Text() const { return fmt::format("{} {}", interface, address.ip.to_string()); }

Result<Rule::Entry> Rule::ParseEntry(std::string_view text) {
  Entry entry;
  entry.text = text;
  if (text.starts_with('^')) {
    entry.excludes = true;
    text.remove_prefix(1);
  }
  if (text.starts_with('=')) {
    entry.exact = true;
    text.remove_prefix(1);
  }
  if (text.empty()) return Wrong(entry.text, "names no interface");
  if (text == kAuto) return Wrong(entry.text, "must be the only entry; leave it or the others out");
  if (!LooksLikeAddress(text)) {
    if (text.size() > kLongestName) return Wrong(entry.text, "is longer than the 127 characters of a name");
    if (text.find_first_of(" \t^=*") != std::string_view::npos) {
      return Wrong(entry.text, "is not the name of an interface; a prefix such as \"eth\" needs no '*'");
    }
    entry.name = text;
    return entry;
  }
  if (entry.exact) return Wrong(entry.text, "is an address, which needs no '='");
  const auto slash = text.find('/');
  error_code problem;
  entry.network = asio::ip::make_address(std::string(text.substr(0, slash)), problem);
  if (problem || (entry.network.is_v6() && entry.network.to_v6().scope_id() != 0)) {
    return Wrong(entry.text,
                 "is neither the name of an interface nor an address such as 10.0.0.5 or fd00::2");
  }
  const int bits = entry.network.is_v6() ? 128 : 32;
  entry.prefix = bits;
  if (slash == std::string_view::npos) return entry;
  entry.prefix = NumberOf<int>(text.substr(slash + 1)).value_or(-1);
  if (entry.prefix >= 0 && entry.prefix <= bits) return entry;
  return Wrong(entry.text, fmt::format("has no number from 0 to {} behind its '/'", bits));
}

Result<Rule> Rule::Parse(std::string_view text) {
  Rule rule;
  rule.text_ = Trim(text);
  if (rule.text_ == kAuto) return rule;
  for (const std::string_view item : Split(rule.text_, ',')) {
    Result<Entry> entry = ParseEntry(Trim(item));
    if (!entry) return entry.error();
    rule.entries_.push_back(*std::move(entry));
  }
  // In NCCL's grammar a leading '^' excludes the whole list, so "^docker0,lo" must not select lo.
  if (!rule.entries_.front().excludes) return rule;
  for (const Entry& entry : rule.entries_) {
    if (entry.excludes) continue;
    return Wrong(rule.text_,
                 fmt::format("excludes and then chooses '{0}'; write '^{0}' to exclude it too, or "
                             "put it first to choose it",
                             entry.text));
  }
  return rule;
}

bool Rule::chooses() const { return !entries_.empty() && !entries_.front().excludes; }

bool Rule::Matches(const Entry& entry, const Interface& one, const std::vector<Interface>& all) const {
  if (entry.name.empty()) {
    return std::ranges::any_of(one.addresses, [&](const Address& address) {
      return InNetwork(address.ip, entry.network, entry.prefix);
    });
  }
  if (one.name == entry.name || std::ranges::find(one.other_names, entry.name) != one.other_names.end())
    return true;
  if (entry.exact || !HasPrefix(one.name, entry.name)) return false;
  // A complete name selects only that interface, not those stacked on it.
  return std::ranges::none_of(all, [&](const Interface& other) {
    return other.name == entry.name ||
           std::ranges::find(other.other_names, entry.name) != other.other_names.end();
  });
}

const Rule::Entry* Rule::Excluding(const Interface& one, const std::vector<Interface>& all) const {
  const auto it = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.excludes && !entry.name.empty() && Matches(entry, one, all);
  });
  return it == entries_.end() ? nullptr : &*it;
}

const Rule::Entry* Rule::Excluding(const Address& address) const {
  const auto it = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.excludes && entry.name.empty() && InNetwork(address.ip, entry.network, entry.prefix);
  });
  return it == entries_.end() ? nullptr : &*it;
}

std::vector<Address> Rule::Chosen(const Interface& one, const std::vector<Interface>& all) const {
  std::vector<Address> usual = Usual(one);
  if (!chooses()) return usual;
  std::vector<Address> out;
  const auto add = [&](const Address& address) {
    const bool there = std::ranges::any_of(out, [&](const Address& other) { return other.ip == address.ip; });
    if (!there) out.push_back(address);
  };
  for (const Entry& entry : entries_) {
    if (entry.excludes || !Matches(entry, one, all)) continue;
    if (!entry.name.empty()) {
      for (const Address& address : usual) add(address);
      continue;
    }
    for (const Address& address : one.addresses) {
      if (InNetwork(address.ip, entry.network, entry.prefix) && !address.ip.is_loopback()) add(address);
    }
  }
  return out;
}

Result<Offer> Rule::Apply(const std::vector<Interface>& interfaces) const {
  Offer offer;
  std::string reasons;
  const auto leave_out = [&](const Interface& one, const std::string& why) {
    const std::string first = one.addresses.empty() ? "" : one.addresses.front().Text();
    offer.left_out.push_back({one.name, one.kind, first, why});
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : "; ", one.name, why);
  };
  for (const Interface& one : interfaces) {
    const bool named = chooses() && std::ranges::any_of(entries_, [&](const Entry& entry) {
                         return !entry.excludes && Matches(entry, one, interfaces);
                       });
    const auto virtual_bridge = std::ranges::find_if(
        kVirtualBridges, [&](std::string_view name) { return one.name.starts_with(name); });
    if (const Entry* entry = Excluding(one, interfaces); entry != nullptr) {
      leave_out(one, fmt::format("is excluded by '{}'", entry->text));
    } else if (chooses() && !named) {
      leave_out(one, "is not chosen");
    } else if (const std::string obstacle = Obstacle(one); !obstacle.empty()) {
      leave_out(one, obstacle);
    } else if (!chooses() && virtual_bridge != kVirtualBridges.end()) {
      leave_out(one, "is a virtual bridge of this host");
    } else if (const std::vector<Address> chosen = Chosen(one, interfaces); chosen.empty()) {
      leave_out(one, "has no address there that other hosts can reach");
    } else {
      const Entry* excluding = nullptr;  // excludes all of its addresses
      bool left = false;
      for (const Address& address : chosen) {
        if (const Entry* by_address = Excluding(address); by_address != nullptr) {
          excluding = by_address;
          continue;
        }
        left = true;
        offer.candidates.push_back(Make(one, address));
      }
      if (!left) leave_out(one, fmt::format("is excluded by '{}'", excluding->text));
    }
  }
  offer.unmatched = Unmatched(interfaces);
  if (!offer.candidates.empty()) return offer;
  if (Status named = CheckNames(interfaces); !named) return named.error();
  return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' leaves no interface of this host that can reach others: {}",
                   text_, reasons.empty() ? "it has none" : reasons);
}

std::vector<std::string> Rule::Unmatched(const std::vector<Interface>& interfaces) const {
  std::vector<std::string> unmatched;
  for (const Entry& entry : entries_) {
    const bool matched = std::ranges::any_of(
        interfaces, [&](const Interface& one) { return Matches(entry, one, interfaces); });
    if (!entry.excludes && !matched) unmatched.push_back(entry.text);
  }
  return unmatched;
}

Status Rule::CheckNames(const std::vector<Interface>& interfaces) const {
  const auto choosing = static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const Entry& entry) { return !entry.excludes; }));
  if (choosing == 0 || Unmatched(interfaces).size() < choosing) return {};
  std::vector<std::string> names;
  for (const Interface& one : interfaces) names.push_back(one.name);
  std::optional<std::string> nearest;
  for (const Entry& entry : entries_) {
    if (!nearest && !entry.excludes && !entry.name.empty()) nearest = Nearest(entry.name, names);
  }
  return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' is not an interface of this host, which has {}{}", text_,
                   ListText(interfaces),
                   nearest ? fmt::format("; did you mean '{}'?", *nearest) : AddressHint(interfaces));
}

// A hint for users who wrote the address of one host but mean its network.
std::string Rule::AddressHint(const std::vector<Interface>& interfaces) const {
  for (const Entry& entry : entries_) {
    const bool alone = entry.name.empty() && entry.prefix == (entry.network.is_v4() ? 32 : 128);
    if (entry.excludes || !alone) continue;
    for (const Interface& one : interfaces) {
      for (const Address& address : one.addresses) {
        if (!InNetwork(address.ip, entry.network, address.prefix)) continue;
        return fmt::format(
            "; an address is of one host: '{}/{}' is its network, which this host is in, and "
            "network.interface_on gives each host its own",
            entry.text, address.prefix);
      }
    }
    return "; an address is of one host: name a network such as '10.0.0.0/16', or give each host its own in "
           "network.interface_on";
  }
  return {};
}

}  // namespace dtrun::network
