// Whether an error that a Python thread has met may still propagate.
//
// Pure; any thread.
#pragma once

#include "core/stacks/frame.h"
#include "core/stacks/place.h"

namespace dtrun::stacks {

// True if a line of the stack is in an `except` or `finally` clause. Also true if the script is no longer on
// the stack, for example while the interpreter exits, or if there is no source with indentation to examine.
// Otherwise the error is over.
bool MayHandleError(const PythonThread& thread, const Source& source);

}  // namespace dtrun::stacks
