// Looks into the logs of the rank that failed first for a failure that is known.
//
// Recognise reads files, so it is called once a generation, when all has ended; any thread.
#pragma once

#include "core/base/result.h"
#include "core/verdict/facts.h"

namespace dtrun::verdict {

// Whether the program ended itself, so that its last words may say why.
bool EndedByItself(const process::Ending& ending);

// Sets `known` of the rank that is the first cause, if its output says anything known. A rank
// that was killed from outside says nothing of why. The error names a log that cannot be read.
Status Recognise(Facts* facts);

}  // namespace dtrun::verdict
