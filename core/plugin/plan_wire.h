// What a probe and its parent tell each other of a launcher's plan: lines as in wire.h.
//
//   parent  {"plan": {"options": "...", "job": {...}}}
//   child   {"planned": {"processes": [...], "notes": [...]}} or {"error": {...}}
//
// With "more": true in it, another such line follows. A process is told by what differs from the first one of its
// line.
//
// Arguments, variables and folders are bytes: each byte is a character of the JSON text. Pure; any thread.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/plugin/launch_job.h"

namespace dtrun::plugin::wire {

struct PlanRequest {
  std::string options;  // options::ToJson
  LaunchJob job;
};

std::string Encode(const PlanRequest& request);
// `more`: it is a part of the plan, and another one follows.
std::string Encode(const LaunchPlan& plan, bool more = false);

// The error is the child's own, when the line carries one.
Result<PlanRequest> DecodePlanRequest(std::string_view line);
// Adds to *plan; true: another line follows.
Result<bool> DecodePlan(std::string_view line, LaunchPlan* plan);

}  // namespace dtrun::plugin::wire
