// The messages about a launcher's plan between a probe and its parent: lines as in wire.h.
//
//   parent  {"plan": {"options": "...", "job": {...}}}
//   child   {"planned": {"processes": [...], "notes": [...]}} or {"error": {...}}
//
// A line with "more": true is followed by another one. Each process is encoded as its difference from the first one
// in its line.
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
// `more`: this is a part of the plan, and another one follows.
std::string Encode(const LaunchPlan& plan, bool more = false);

// An error may be the child's own, carried in the line.
Result<PlanRequest> DecodePlanRequest(std::string_view line);
// Adds to *plan; true: another line follows.
Result<bool> DecodePlan(std::string_view line, LaunchPlan* plan);

}  // namespace dtrun::plugin::wire
