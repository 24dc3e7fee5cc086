// One entry of a file of known failures, checked.
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
  std::string what;  // and what to do
};

// Nothing, with at least one problem added, when the entry cannot be used.
std::optional<KnownFailure> ReadEntry(const config::Node& entry, std::vector<Problem>* problems);

}  // namespace dtrun::failures
