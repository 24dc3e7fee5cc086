// From a torchrun command line and the PET_ variables to Arguments, by argparse's rules.
//
// Pure; any thread. Where torchrun's parser is stricter by accident (both spellings of one
// option make a prefix ambiguous; a script's own arguments are checked too), this one is not.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::torchrun {

struct Parsed {
  bool help = false;  // asked for; nothing else is set then
  Arguments arguments;
};

// `words`: behind the program's name. The error is one line, without the usage.
Result<Parsed> Parse(Program program, const std::vector<std::string>& words,
                     const std::map<std::string, std::string>& environment);

}  // namespace dtrun::torchrun
