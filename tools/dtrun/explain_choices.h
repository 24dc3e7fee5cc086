// The choices of a job and their reasons, from the records in its run directory. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace dtrun::cli {

// One choice.
struct Choice {
  std::string topic;  // "interface"
  std::string value;  // empty: not recorded
  std::string reason;
};

// The contents of the run directory.
struct Records {
  Json plan, config;
  std::optional<Json> verdict;
  std::optional<Json> network;  // with several hosts only
};

// The text at `path` ("/backend/name"); empty if absent.
std::string TextAt(const Json& json, const char* path);

// Ranks, backend, library, transport, paths between ranks, interface, algorithm, GPU peer access, notes.
std::vector<Choice> ChoicesOf(const Records& records);

}  // namespace dtrun::cli
