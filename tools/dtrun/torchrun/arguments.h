// A parsed torchrun command line: every option of torchrun with its default.
//
// Parse creates it from the arguments and the PET_ variables; Translate reads it. Values; any thread. Names
// are torchrun's own, so that its manual explains them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/options/value.h"

namespace dtrun::torchrun {

// An error in the command line.
inline Error Bad(std::string text) { return Error{DTRUN_INVALID_ARGUMENT, std::move(text)}; }

// The program that is emulated: torchrun (torch.distributed.run) or the older torch.distributed.launch, which
// also passes --local-rank to each rank.
enum class Program { kTorchrun, kLaunch };

// Streams of a rank, as bits.
enum Streams : int { kNoStream = 0, kStdout = 1, kStderr = 2 };

// "3" for all ranks, or "0:1,12:3" for some; unnamed ranks have none.
struct StreamSpec {
  int all = kNoStream;
  std::map<int, int> of;  // by local rank; if not empty, `all` is ignored
  int For(int local_rank) const;
};

struct Arguments {
  int min_nodes = 1;
  int max_nodes = 1;
  std::string nproc_per_node = "1";  // a number, or cpu, gpu, auto, ...

  std::string rdzv_backend = "static";
  std::string rdzv_endpoint;
  std::string rdzv_id = "none";
  std::vector<std::pair<std::string, std::string>> rdzv_conf;
  bool standalone = false;
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  std::optional<int> master_port;
  std::optional<std::string> local_addr;

  int max_restarts = 0;
  double monitor_interval = 0.1;
  std::string start_method = "spawn";
  std::string event_log_handler = "null";
  std::string role = "default";
  bool module = false;
  bool no_python = false;
  bool run_path = false;
  bool use_env = true;  // false: adds --local-rank after the script
  std::string signals_to_handle = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  std::optional<int> shutdown_timeout;  // seconds
  bool virtual_local_rank = false;

  std::optional<std::string> log_dir;
  StreamSpec redirects;
  StreamSpec tee;
  std::vector<int> local_ranks_filter;  // empty: all
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
  std::optional<std::string> log_line_prefix_template;

  std::optional<std::string> logs_specs;
  std::optional<std::string> numa_binding;

  std::string training_script;
  std::vector<std::string> training_script_args;

  // The origin of each given option: "nnodes" -> "--nnodes" or "PET_NNODES".
  std::map<std::string, options::Origin, std::less<>> origins;
  bool Given(std::string_view name) const { return origins.find(name) != origins.end(); }
};

}  // namespace dtrun::torchrun
