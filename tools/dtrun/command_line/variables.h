// Variables that mpirun, mpiexec, srun and torchrun read when they start ranks. dtrun starts the ranks itself,
// so they would be without effect in silence.
//
// Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace dtrun::cli {

// How a job is started, as far as it decides which variables are read.
struct Started {
  std::string launcher;  // launcher.name
  std::string platform;  // that gave the hosts; empty: none
};

// A line for each variable, or kind of them, that has no effect, with what to write in its place. None for
// those that an outer launcher has set, and none for what ranks read themselves, as OMPI_MCA_btl.
std::vector<std::string> UnusedVariables(const std::map<std::string, std::string>& environment,
                                         const Started& job);

}  // namespace dtrun::cli
