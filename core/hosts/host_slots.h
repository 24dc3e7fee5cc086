// A host of the job and its number of slots, as users write them in a list.
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
#include "core/wire/limits.h"

namespace dtrun::hosts {

inline constexpr int kMaxHosts = 65536;
inline constexpr int kMaxSlots = 4096;       // the bound of job.processes_per_host
inline constexpr int kMaxRanks = 1'000'000;  // for all hosts together; the bound of job.ranks

struct HostSlots {
  std::string name;          // a name or an address, IPv6 without brackets; may begin with "user@"
  std::optional<int> slots;  // unset: not given
  void Fields(auto& io) {
    io("name", name);
    io("slots", slots);
  }
  bool operator==(const HostSlots&) const = default;
};

// "node0", "node1:4", "10.0.0.1:2", "[fe80::1%eth0]:2", "me@node0", "me@[fe80::1]:2".
Result<HostSlots> ParseHost(std::string_view text);
// The inverse of ParseHost.
std::string ToText(const HostSlots& host);

// Parses cluster.hosts. A duplicate host is an error.
Result<std::vector<HostSlots>> ParseHosts(const std::vector<std::string>& items);

// Parses a number from 1 to kMaxSlots.
Result<int> ParseSlots(std::string_view text);

// Rejects a job with more than kMaxRanks.
Status CheckSize(std::size_t hosts, std::int64_t ranks);

// Accepts names that are safe to pass to a resolver: letters, digits, '.', '-', '_', or an IPv6 address; each
// with an optional user and '@' for a remote shell.
Status CheckHostName(std::string_view name);

// Natural sort order: "node2" before "node10".
bool NaturallyBefore(std::string_view a, std::string_view b);

}  // namespace dtrun::hosts
