// The Python tracebacks among the lines that a rank has printed.
//
// Pure; any thread. Lines are without their ends; torch's "[rank1]: " in front of them does not matter.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/stacks/place.h"

namespace dtrun::verdict {

// The last error that these lines show: "ValueError: the true cause", the end of a traceback; empty when
// there is none.
std::string ErrorIn(const std::vector<std::string>& lines);

// "ValueError" of that error.
std::string_view ExceptionOf(std::string_view error);

// Whether that is Python's word for no memory.
bool SaysMemoryError(const std::vector<std::string>& lines);

// Whether something stands behind that error: a message of several lines, or what the program printed since.
bool SaysMoreThanItsError(const std::vector<std::string>& lines);

// Where the last traceback ends, as far as its files and functions say.
std::optional<stacks::Place> PlaceIn(const std::vector<std::string>& lines);

// In words: "in all_reduce at train.py:8"; empty when there is none.
std::string ErrorPlaceIn(const std::vector<std::string>& lines);

// Whether the error is the program's own, whatever its text: a `raise` in a file of the program, and no
// traceback in these lines ends where ranks wait for each other.
bool RaisedByTheProgram(const std::vector<std::string>& lines);

// Whether the last traceback is of a thread or a child process that ended with it: "Exception in thread ...".
bool EndedAThread(const std::vector<std::string>& lines);

// The lines from the last traceback on; all when there is none.
std::vector<std::string> FromLastTraceback(const std::vector<std::string>& lines);

}  // namespace dtrun::verdict
