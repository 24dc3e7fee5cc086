// What a job used and why, as the records of its run directory have it. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace dtrun::cli {

// One thing that was chosen.
struct Choice {
  std::string topic;  // "interface"
  std::string value;  // empty: not recorded
  std::string reason;
};

// What the run directory holds.
struct Records {
  Json plan, config;
  std::optional<Json> verdict;
  std::optional<Json> network;  // of several hosts
};

// The text at `path` ("/backend/name"); empty when there is none.
std::string TextAt(const Json& json, const char* path);

// Ranks, backend, library, transport, paths between ranks, interface, algorithm, access between GPUs, notes.
std::vector<Choice> ChoicesOf(const Records& records);

}  // namespace dtrun::cli
