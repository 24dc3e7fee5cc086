// What a launcher is asked to plan or to reach, and what it plans, as plain data.
//
// Texts are bytes as the system has them, and need not be UTF-8. Values; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/process_variables.h"

namespace dtrun::plugin {

// dtrun_job of the ABI.
struct LaunchJob {
  struct Host {
    std::string name;
    int first_rank = 0, local_size = 0, cores = 0;
  };

  std::string name;
  std::vector<std::string> argv;
  std::string cwd;
  std::vector<Host> hosts;
  int world_size = 0;
  std::string master_addr, master_port, run_dir, generation, program, bind;
  std::map<std::string, std::string> inherited;  // the environment that ranks inherit
};

// dtrun_process of the ABI.
struct PlannedProcess {
  int host = 0, rank = 0, local_rank = 0, rank_count = 1;
  std::vector<std::string> argv;
  ProcessVariables env;
  std::vector<std::string> unset;  // variables that it does not inherit
  std::string cwd;
};

// dtrun_connect_query of the ABI.
struct ConnectRequest {
  std::vector<std::string> hosts;
  std::vector<std::string> argv;  // to run once on each
  std::map<std::string, std::string> environment;
};

struct LaunchPlan {
  std::vector<PlannedProcess> processes;  // in the order in which the launcher gave them
  std::vector<std::string> notes;
};

}  // namespace dtrun::plugin
