// The syntax of values in torchrun's options: nodes, endpoints, streams, lists.
//
// Pure functions; any thread. Errors state what was expected and found, without the option's name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/endpoint.h"
#include "core/base/result.h"
#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::torchrun {

// Like Python's int(): allows surrounding spaces and a sign.
std::optional<int> ParseInt(std::string_view text);
// Like Python's float().
std::optional<double> ParseFloat(std::string_view text);

// "2" or "1:4", with 0 < MIN <= MAX.
Result<std::pair<int, int>> ParseNodes(std::string_view text);

// The rendezvous host, without "user@", and optionally a port (0 allowed); empty means localhost.
Result<Endpoint> MeetingPlace(std::string_view text);

// Whether the host name certainly means this host.
bool IsLoopback(std::string_view host);

// "key=value,key=value"; a later value replaces an earlier one.
Result<std::vector<std::pair<std::string, std::string>>> ParseRendezvousConfig(std::string_view text);

// "3", or "0:1,12:3". torchrun takes one digit as the rank; here it may have several.
Result<StreamSpec> ParseStreams(std::string_view text);

// "0,2,11"
Result<std::vector<int>> ParseRanks(std::string_view text);

// "a,b" with ",," for a comma in an item.
std::vector<std::string> ParseFilters(std::string_view text);

// Replaces ${role_name}, ${local_rank}, ${rank} and ${hostname}, with or without braces;
// "$$" is "$"; other names stay.
std::string ExpandPrefix(std::string_view text, const std::map<std::string, std::string>& values);

}  // namespace dtrun::torchrun
