// The input of a launcher's plan and connect calls, and its plan, as plain data.
//
// Texts are the system's bytes and need not be UTF-8. Values; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/process_variables.h"
#include "core/wire/limits.h"

namespace dtrun::plugin {

// dtrun_job of the ABI.
struct LaunchJob {
  struct Host {
    std::string name;
    int first_rank = 0, local_size = 0, cores = 0;
    void Fields(auto& io) {
      io("name", name);
      io("first_rank", first_rank);
      io("local_size", local_size);
      io("cores", cores);
    }
  };

  std::string name;
  std::vector<std::string> argv;
  std::string cwd;
  std::vector<Host> hosts;
  int world_size = 0;
  std::string master_addr, master_port, run_dir, generation, program, bind;
  std::map<std::string, std::string> inherited;  // the environment that ranks inherit
  void Fields(auto& io) {
    io("name", name);
    io("argv", argv, wire::kMostEntries);
    io("cwd", cwd);
    io("hosts", hosts, wire::kMostHosts);
    io("world_size", world_size);
    io("master_addr", master_addr);
    io("master_port", master_port);
    io("run_dir", run_dir);
    io("generation", generation);
    io("program", program);
    io("bind", bind);
    io("inherited", inherited, wire::kMostEntries);
  }
};

// dtrun_process of the ABI.
struct PlannedProcess {
  int host = 0, rank = 0, local_rank = 0, rank_count = 1;
  std::vector<std::string> argv;
  ProcessVariables env;
  std::vector<std::string> unset;  // variables not to inherit
  std::string cwd;
};

// dtrun_connect_query of the ABI.
struct ConnectRequest {
  std::vector<std::string> hosts;
  std::vector<std::string> argv;  // run once on each host
  std::map<std::string, std::string> environment;
  void Fields(auto& io) {
    io("hosts", hosts, wire::kMostHosts);
    io("argv", argv, wire::kMostEntries);
    io("environment", environment, wire::kMostEntries);
  }
};

struct LaunchPlan {
  std::vector<PlannedProcess> processes;  // in the launcher's order
  std::vector<std::string> notes;
};

}  // namespace dtrun::plugin
