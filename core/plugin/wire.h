// The messages between a probe and its parent: one JSON object per line.
//
//   child   {"description": {...}} or {"error": {...}}, once, when the plugin is loaded
//   parent  {"launch": {"options": "...", "host_count": 1, "local_ranks": 2}}
//   child   {"launch_info": {...}} or {"error": {...}}
//
// Both ends are the same program, but the plugin may have corrupted the child: a line that does not
// parse is an error, never undefined behaviour. Pure; any thread.
#pragma once

#include <string>

#include "core/plugin/plugin.h"

namespace dtrun::plugin::wire {

struct LaunchRequest {
  std::string options;  // options::ToJson
  int host_count = 1;
  int local_ranks = 1;
};

std::string Encode(const Error& error);
std::string Encode(const Description& description);  // without `file`, but with its name
std::string Encode(const LaunchInfo& info);
std::string Encode(const LaunchRequest& request);

// An error may be the child's own, carried in the line.
Result<Description> DecodeDescription(std::string_view line);
Result<LaunchInfo> DecodeLaunchInfo(std::string_view line);
Result<LaunchRequest> DecodeLaunchRequest(std::string_view line);

}  // namespace dtrun::plugin::wire
