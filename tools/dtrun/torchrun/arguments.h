// torchrun's command line: the table of its options, and a parsed line, with every option or its default.
//
// Parse follows argparse's rules. It is more lenient than torchrun's parser where that is strict by accident:
// it treats a prefix of one option's two spellings as ambiguous, and also checks the script's own arguments.
// Constant data and pure functions; any thread. Names are torchrun's own, so that its manual explains them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
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
  // "--nnodes" or "PET_NNODES".
  std::string PlaceOf(std::string_view name) const;
  // Of torchrun's own defaults the program itself.
  options::Origin OriginOf(std::string_view name) const {
    const auto found = origins.find(name);
    return found != origins.end() ? found->second
                                  : options::Origin{DTRUN_ORIGIN_COMMAND_LINE, "dtrun torchrun"};
  }
};

// A row of the table of options. The texts are from torch 2.13.
struct Option {
  std::string_view name = {};     // "nproc_per_node": PET_NPROC_PER_NODE in the environment
  std::string_view metavar = {};  // empty: a flag
  std::string_view help = {};
  // Takes the value, or for a flag "" if it is off. Errors state the expected value. Null: help.
  std::function<Status(const std::string& text, Arguments* to)> set = {};
  char letter = '\0';       // the short form: 'r'
  bool environment = true;  // whether there is a PET_ variable

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

struct Parsed {
  bool help = false;  // --help was given; all else is unset
  Arguments arguments;
};

// Reads the words after the program's name, and then the PET_ variables. The error is one line, without the
// usage.
Result<Parsed> Parse(Program program, const std::vector<std::string>& words,
                     const std::map<std::string, std::string>& environment);

}  // namespace dtrun::torchrun
