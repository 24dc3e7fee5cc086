// A host of the job and how many ranks it has room for, as users write it in a list.
//
// Pure functions and values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::hosts {

inline constexpr int kMaxHosts = 65536;
inline constexpr int kMaxSlots = 4096;       // the bound of job.processes_per_host
inline constexpr int kMaxRanks = 1'000'000;  // of all hosts together; the bound of job.ranks

struct HostSlots {
  std::string name;          // a name or an address, IPv6 without its brackets; "user@" may stand before it
  std::optional<int> slots;  // unset: not said
  bool operator==(const HostSlots&) const = default;
};

// "node0", "node1:4", "10.0.0.1:2", "[fe80::1%eth0]:2", "me@node0", "me@[fe80::1]:2".
Result<HostSlots> ParseHost(std::string_view text);
// The inverse.
std::string ToText(const HostSlots& host);

// cluster.hosts. A host that stands twice is an error.
Result<std::vector<HostSlots>> ParseHosts(const std::vector<std::string>& items);

// The number in `text`, from 1 to kMaxSlots.
Result<int> ParseSlots(std::string_view text);

// Refuses a job with more than kMaxRanks.
Status CheckSize(std::size_t hosts, std::int64_t ranks);

// Names that a resolver may be asked for: letters, digits, '.', '-', '_', or an IPv6 address; and a user's
// name and '@' before that, for a remote shell.
Status CheckHostName(std::string_view name);

// The order of people: "node2" before "node10".
bool NaturallyBefore(std::string_view a, std::string_view b);

}  // namespace dtrun::hosts
