// What a small program prints: runs it to its end.
//
// Its standard error is this process's, its standard input is empty. It must end by itself. Any thread of a
// process that does not wait for all its children in another.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun {

struct ProgramOutput {
  std::string text;
  int status = 0;  // as of waitpid
  bool succeeded() const;
};

struct ProgramCall {
  std::vector<std::string> command;           // the program by its path, and arguments
  std::vector<std::string> environment = {};  // "NAME=value"; empty: this process's own
  std::string folder = {};                    // empty: this process's own
};

// An error says that it could not be started.
Result<ProgramOutput> OutputOf(ProgramCall call);

}  // namespace dtrun
