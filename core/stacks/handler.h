// Whether an error that a Python thread has met may still be on its way.
//
// Pure; any thread.
#pragma once

#include "core/stacks/frame.h"
#include "core/stacks/place.h"

namespace dtrun::stacks {

// True when a line of the stack is in an `except` or `finally` clause, or when the script is not on the
// stack any more, as while the interpreter ends, and where no source is available to tell by its
// indentation. Else what the thread has met is over.
bool MayHandleError(const PythonThread& thread, const Source& source);

}  // namespace dtrun::stacks
