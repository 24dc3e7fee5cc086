// Finds Python tracebacks in the output of a rank.
//
// Pure; any thread. Lines come without their newlines. Torch's prefix "[rank1]: " is ignored.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/stacks/place.h"

namespace dtrun::verdict {

// The last error in these lines, from the end of a traceback: "ValueError: the true cause". Empty: none.
std::string ErrorIn(const std::vector<std::string>& lines);

// The exception's name: "ValueError".
std::string_view ExceptionOf(std::string_view error);

// Whether that error is MemoryError.
bool SaysMemoryError(const std::vector<std::string>& lines);

// Whether text follows that error: more lines of its message, or later output of the program.
bool SaysMoreThanItsError(const std::vector<std::string>& lines);

// The innermost frame of the last traceback, as far as its files and functions tell.
std::optional<stacks::Place> PlaceIn(const std::vector<std::string>& lines);

// "in all_reduce at train.py:8"; empty if there is none.
std::string ErrorPlaceIn(const std::vector<std::string>& lines);

// Where the program's own code failed, in the same form: its innermost frame outside packages and Python's
// library, of the last traceback. Empty: none of its frames is there, or the traceback ended only a thread.
std::string OwnErrorPlaceIn(const std::vector<std::string>& lines);

// The same of the stack that Python's faulthandler printed when a signal killed the process.
std::string OwnCrashPlaceIn(const std::vector<std::string>& lines);

// The lines without the native frames that a handler of a crash prints, such as "[ 3] main(+0x26)[0x7f41]", and
// without what a dump of faulthandler has beside the thread that crashed and its innermost frames.
std::vector<std::string> WithoutDumps(const std::vector<std::string>& lines);

// Whether the line only marks a part of the source line above it: "    ~~~^^^^^".
bool OnlyMarks(std::string_view line);

// Whether the program itself raised the error: a `raise` in a file of the program, and no traceback in these
// lines ends where ranks wait for each other.
bool RaisedByTheProgram(const std::vector<std::string>& lines);

// Whether the last traceback ended only a thread or a child process: "Exception in thread ...".
bool EndedAThread(const std::vector<std::string>& lines);

// The lines from the last traceback on; all lines if there is none.
std::vector<std::string> FromLastTraceback(const std::vector<std::string>& lines);

}  // namespace dtrun::verdict
