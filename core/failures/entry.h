// Reads and checks one entry, [[failure]] or [[fallback]], of a file of known failures.
//
// Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "core/failures/failure.h"

namespace dtrun::failures {

struct Problem {
  config::Position at;
  std::string what;  // includes what to do
};

// Nullopt, with at least one problem added, if the entry cannot be used.
std::optional<KnownFailure> ReadFailure(const config::Node& entry, std::vector<Problem>* problems);
std::optional<FallbackLevel> ReadFallback(const config::Node& entry, std::vector<Problem>* problems);

}  // namespace dtrun::failures
