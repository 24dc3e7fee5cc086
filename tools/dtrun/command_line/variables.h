// Finds variables of mpirun, mpiexec, srun and torchrun that have no effect, because dtrun starts the ranks
// itself.
//
// Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace dtrun::cli {

// The launch spec that decide which variables are read.
struct Started {
  std::string launcher;  // launcher.name
  std::string platform;  // the source of the hosts; empty: none
};

// A line for each variable, or group of variables, without effect, with a replacement. Ignores variables set
// by an outer launcher, and variables that ranks read themselves, such as OMPI_MCA_btl.
std::vector<std::string> UnusedVariables(const std::map<std::string, std::string>& environment,
                                         const Started& job);

}  // namespace dtrun::cli
