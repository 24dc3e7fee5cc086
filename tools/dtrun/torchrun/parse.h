// Parses a torchrun command line and the PET_ variables into Arguments, by argparse's rules.
//
// Pure; any thread. More lenient than torchrun's parser where that is strict by accident: it treats a prefix
// of one option's two spellings as ambiguous, and also checks the script's own arguments.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::torchrun {

struct Parsed {
  bool help = false;  // --help was given; all else is unset
  Arguments arguments;
};

// `words`: after the program's name. The error is one line, without the usage.
Result<Parsed> Parse(Program program, const std::vector<std::string>& words,
                     const std::map<std::string, std::string>& environment);

}  // namespace dtrun::torchrun
