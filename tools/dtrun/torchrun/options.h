// The table of torchrun's options: spellings, whether they take a value, and a line of help. Constant data;
// any thread. The texts are from torch 2.13.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::torchrun {

struct Option {
  std::string_view name;     // "nproc_per_node": PET_NPROC_PER_NODE in the environment
  char letter = '\0';        // the short form: 'r'
  std::string_view metavar;  // empty: a flag
  bool environment = true;   // whether there is a PET_ variable
  std::string_view help;

  bool flag() const { return metavar.empty(); }
  std::string Spelling() const;     // "--nproc-per-node"
  std::string Environment() const;  // "PET_NPROC_PER_NODE"
};

// In the order of the help text.
const std::vector<Option>& Options(Program program);

// Name and usage line for errors and help.
std::string_view ProgramName(Program program);
std::string Usage(Program program);
std::string Help(Program program);

}  // namespace dtrun::torchrun
