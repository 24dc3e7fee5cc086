// The messages about hosts between a probe and its parent: lines as in wire.h.
//
//   parent  {"find_hosts": {"options": "...", "environment": [...]}}
//   child   {"allocation": {...}} or {"error": {...}}
//   parent  {"connect": {"options": "...", "hosts": [...], "argv": [...], "environment": [...]}}
//   child   {"commands": [...]} or {"error": {...}}
//
// Pure; any thread.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/hosts/launchers.h"
#include "core/plugin/launch_job.h"

namespace dtrun::plugin::wire {

struct HostsRequest {
  std::string options;  // options::ToJson
  hosts::Environment environment;
};

struct ConnectCall {
  std::string options;
  ConnectRequest request;
};

std::string Encode(const HostsRequest& request);
std::string Encode(const ConnectCall& call);
std::string Encode(const hosts::Allocation& allocation);
std::string Encode(const std::vector<hosts::StartCommand>& commands);

// An error may be the child's own, carried in the line.
Result<HostsRequest> DecodeHostsRequest(std::string_view line);
Result<ConnectCall> DecodeConnectCall(std::string_view line);
Result<hosts::Allocation> DecodeAllocation(std::string_view line);
Result<std::vector<hosts::StartCommand>> DecodeCommands(std::string_view line);

}  // namespace dtrun::plugin::wire
