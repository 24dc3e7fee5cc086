// Searches the logs of the rank that failed first for a known failure.
//
// Recognise reads files: call it once per generation, after all ranks have ended. Any thread.
#pragma once

#include "core/base/result.h"
#include "core/verdict/facts.h"

namespace dtrun::verdict {

// Whether the program ended itself, so that its last output may explain why.
bool EndedByItself(const process::Ending& ending);

// Sets `known` of the rank that is the first cause, if its output contains a known failure. Skips a rank that
// was killed from outside: its output does not explain that. The error names a log that cannot be read.
Status Recognise(Facts* facts);

}  // namespace dtrun::verdict
