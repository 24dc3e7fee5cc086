// Reads and checks one entry, [[failure]] or [[fallback]], of a file of known failures.
//
// Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/spec/document.h"
#include "core/failures/failure.h"

namespace dtrun::failures {

struct Problem {
  spec::Position at;
  std::string what;  // includes what to do
};

// Nullopt, with at least one problem added, if the entry cannot be used.
std::optional<KnownFailure> ReadFailure(const spec::Node& entry, std::vector<Problem>* problems);
std::optional<FallbackLevel> ReadFallback(const spec::Node& entry, std::vector<Problem>* problems);

}  // namespace dtrun::failures
