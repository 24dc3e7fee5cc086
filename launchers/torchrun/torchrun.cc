// torchrun: every rank is a process of its own, with the environment and the command line
// that PyTorch's torchrun would have given it (torch/distributed/run.py and
// torch/distributed/elastic/agent/server/local_elastic_agent.py of torch 2.13).
#include <unistd.h>

#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dtrun/plugin.hpp"

namespace {

using dtrun::sdk::Failure;
using dtrun::sdk::Job;
using dtrun::sdk::Options;
using Arguments = std::vector<std::string>;

constexpr const char* kEntries[] = {"command", "script", "module", "path"};
enum class Entry { kCommand, kScript, kModule, kPath };

constexpr const char* kPlaceholders[] = {"dtrun", "torchrun"};
enum class Placeholders { kDtrun, kTorchrun };

constexpr const char* kErrorFiles[] = {"rank", "attempt", "none"};
enum class ErrorFiles { kRank, kAttempt, kNone };

constexpr char kOmpThreads[] = "OMP_NUM_THREADS";
constexpr char kDevices[] = "CUDA_VISIBLE_DEVICES";
constexpr char kAgentStore[] = "TORCHELASTIC_USE_AGENT_STORE";
constexpr char kRankServes[] = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE";
constexpr char kAsyncErrors[] = "TORCH_NCCL_ASYNC_ERROR_HANDLING";
// torchrun --run-path: the script becomes __main__ of an interpreter that is already up.
constexpr char kRunPath[] =
    "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')";

// Python's string.Template(text).safe_substitute(local_rank=...): "$local_rank" and
// "${local_rank}" are replaced, "$$" is "$", and everything else stays.
std::string Substitute(std::string_view text, const std::string& local_rank) {
  std::string out;
  for (std::size_t at; (at = text.find('$')) != text.npos;) {
    out.append(text.substr(0, at));
    text.remove_prefix(at + 1);
    const auto takes = [&text](std::string_view next, bool whole_name) {
      const char after = text.size() > next.size() ? text[next.size()] : ' ';
      const bool longer =
          after == '_' || (static_cast<unsigned char>(after) < 128 && std::isalnum(after) != 0);
      if (!text.starts_with(next) || (whole_name && longer)) return false;
      text.remove_prefix(next.size());
      return true;
    };
    const bool named = takes("{local_rank}", false) || takes("local_rank", true);
    if (!named) takes("$", false);
    out += named ? local_rank : "$";
  }
  return out.append(text);
}

// Core expands "${NAME}" in what a launcher answers; this text is to stay as it is.
std::string Escaped(std::string_view text) {
  std::string out;
  for (std::size_t at; (at = text.find("${")) != text.npos; text.remove_prefix(at + 2)) {
    out.append(text.substr(0, at)).append("$${");
  }
  return out.append(text);
}

class Torchrun final : public dtrun::sdk::Launcher {
 public:
  Torchrun(const dtrun::sdk::Host&, const Options& options)
      : run_id_(options.String("run_id")),
        role_(options.String("role")),
        max_restarts_(options.FindInt("max_restarts")),
        entry_(static_cast<Entry>(options.EnumIndex("entry"))),
        placeholders_(static_cast<Placeholders>(options.EnumIndex("placeholders"))),
        error_files_(static_cast<ErrorFiles>(options.EnumIndex("error_files"))),
        local_rank_argument_(options.FindString("local_rank_argument").value_or("")),
        master_addr_(options.FindString("master_addr").value_or("")),
        signals_(options.String("signals")),
        virtual_local_rank_(options.Bool("virtual_local_rank")),
        agent_store_(options.Bool("agent_store")) {}

  void Plan(const Job& job, const dtrun::sdk::PlanSink& sink) override {
    const bool own_threads = job.Inherited(kOmpThreads).has_value();
    bool limited = false;
    for (std::uint64_t index = 0; index < job.host_count(); ++index) {
      const dtrun_job_host host = job.host(index);
      const bool one_thread = !own_threads && host.local_size > 1;
      for (int local = 0; local < host.local_size; ++local) {
        dtrun::sdk::Process process = job.ProcessFor(index, local);
        process.argv = Command(job, local);
        process.env = Contract(job, process, host);
        if (one_thread) process.env.emplace_back(kOmpThreads, "1");
        sink.Add(process);
      }
      limited = limited || one_thread;
    }
    if (limited) sink.Note("OMP_NUM_THREADS=1 for each rank, as torchrun does; set it to choose another");
  }

 private:
  std::vector<std::pair<std::string, std::string>> Contract(const Job& job,
                                                            const dtrun::sdk::Process& process,
                                                            const dtrun_job_host& host) const {
    const std::string rank = std::to_string(process.rank);
    const std::string world = std::to_string(job.world_size());
    std::vector<std::pair<std::string, std::string>> env = {
        {"RANK", rank},
        {"WORLD_SIZE", world},
        {"LOCAL_RANK", virtual_local_rank_ ? "0" : std::to_string(process.local_rank)},
        {"LOCAL_WORLD_SIZE", std::to_string(host.local_size)},
        {"GROUP_RANK", std::to_string(process.host_index)},
        {"GROUP_WORLD_SIZE", std::to_string(job.host_count())},
        {"ROLE_RANK", rank},  // all ranks have one role
        {"ROLE_WORLD_SIZE", world},
        {"ROLE_NAME", role_},
        {"MASTER_ADDR", master_addr_.empty() ? job.master_addr() : master_addr_},
        {"MASTER_PORT", job.master_port()},
        {"TORCHELASTIC_RESTART_COUNT", job.generation()},
        {"TORCHELASTIC_MAX_RESTARTS", MaxRestarts(job)},
        {"TORCHELASTIC_RUN_ID", run_id_},
        // "True": the agent of rank 0's host serves it.
        {kAgentStore, agent_store_ && job.Inherited(kRankServes) != "1" ? "True" : "False"},
        {"TORCHELASTIC_ERROR_FILE", ErrorFile(job, process)},
        {"TORCHELASTIC_SIGNALS_TO_HANDLE", signals_},
        {kAsyncErrors, job.Inherited(kAsyncErrors).value_or("1")},
    };
    if (virtual_local_rank_) env.emplace_back(kDevices, DeviceOf(job, process.local_rank));
    return env;
  }

  std::string MaxRestarts(const Job& job) const {
    if (max_restarts_) return std::to_string(*max_restarts_);
    return job.Inherited("DTRUN_CONFIG_RESTART_MAX").value_or("0");  // restart.max
  }

  std::string ErrorFile(const Job& job, const dtrun::sdk::Process& process) const {
    if (error_files_ == ErrorFiles::kNone) return "";
    if (error_files_ == ErrorFiles::kRank)
      return job.run_dir() + "/rank-" + std::to_string(process.rank) + ".error.json";
    return job.run_dir() + "/attempt_" + job.generation() + "/" +
           (process.host_index == 0 ? "" : "node_" + std::to_string(process.host_index) + "/") +
           std::to_string(process.local_rank) + "/error.json";
  }

  // The local_rank-th of the devices that are visible here.
  static std::string DeviceOf(const Job& job, int local_rank) {
    const auto visible = job.Inherited(kDevices);
    if (!visible) return std::to_string(local_rank);
    std::size_t begin = 0;
    for (int skipped = 0; skipped < local_rank; ++skipped) {
      begin = visible->find(',', begin);
      if (begin == std::string::npos) {
        throw Failure(DTRUN_INVALID_ARGUMENT,
                      std::string(kDevices) + " is '" + *visible + "', which has no device for local rank " +
                          std::to_string(local_rank) + "; list more devices or start fewer ranks");
      }
      ++begin;
    }
    const std::string device = visible->substr(begin, visible->find(',', begin) - begin);
    const std::size_t first = device.find_first_not_of(' ');
    return first == std::string::npos ? "" : device.substr(first, device.find_last_not_of(' ') + 1 - first);
  }

  static std::string Interpreter(const Job& job) {
    const auto chosen = job.Inherited("PYTHON_EXEC");
    if (!chosen) return "python3";
    const bool path = chosen->starts_with('/');
    if (chosen->empty() || (path && ::access(chosen->c_str(), X_OK) != 0)) {
      throw Failure(
          DTRUN_INVALID_ARGUMENT,
          "PYTHON_EXEC is '" + *chosen + "', which is not a program; unset it, or set it to an interpreter");
    }
    return *chosen;
  }

  Arguments Command(const Job& job, int local_rank) const {
    Arguments user = job.argv();
    Arguments command;
    if (entry_ != Entry::kCommand) {
      command = {Interpreter(job), "-u"};
      if (entry_ == Entry::kModule) command.push_back("-m");
      if (entry_ == Entry::kPath) command.insert(command.end(), {"-c", kRunPath});
    }
    const std::string number = std::to_string(local_rank);
    for (std::size_t i = 0; i < user.size(); ++i) {
      const bool torch = placeholders_ == Placeholders::kTorchrun;
      command.push_back(torch ? Escaped(Substitute(user[i], number)) : std::move(user[i]));
      if (i == 0 && !local_rank_argument_.empty()) command.push_back(local_rank_argument_ + "=" + number);
    }
    return command;
  }

  const std::string run_id_;
  const std::string role_;
  const std::optional<std::int64_t> max_restarts_;
  const Entry entry_;
  const Placeholders placeholders_;
  const ErrorFiles error_files_;
  const std::string local_rank_argument_;
  const std::string master_addr_;
  const std::string signals_;
  const bool virtual_local_rank_;
  const bool agent_store_;
};

constexpr dtrun_option kOptions[] = {
    dtrun::sdk::Option("run_id", DTRUN_TYPE_STRING, "none", "name of the job: TORCHELASTIC_RUN_ID"),
    dtrun::sdk::Option("role", DTRUN_TYPE_STRING, "default", "role of all ranks: ROLE_NAME"),
    dtrun::sdk::Option("max_restarts", DTRUN_TYPE_UINT, nullptr,
                       "value of TORCHELASTIC_MAX_RESTARTS; unset: that of restart.max"),
    dtrun::sdk::Option("entry", DTRUN_TYPE_ENUM, "command", "what the first word of job.command is")
        .Long("\"command\" is a program; \"script\" and \"module\" are run by Python with -u, \"path\" by "
              "runpy.run_path inside it. The interpreter is PYTHON_EXEC, else python3 in PATH.")
        .Choices(kEntries),
    dtrun::sdk::Option("placeholders", DTRUN_TYPE_ENUM, "dtrun", "which placeholders the command may have")
        .Long("\"dtrun\" expands ${RANK} and the like; \"torchrun\" $local_rank and ${local_rank} only, and "
              "$$ is a literal $.")
        .Choices(kPlaceholders),
    dtrun::sdk::Option("error_files", DTRUN_TYPE_ENUM, "rank",
                       "where torch's `record` writes why a rank failed")
        .Long("\"rank\": rank-R.error.json in the run directory. \"attempt\": torchrun's "
              "attempt_N/LOCAL_RANK/error.json there (node_M/LOCAL_RANK on nodes other than the first), "
              "in a folder that must exist before the ranks start. \"none\": no file.")
        .Choices(kErrorFiles),
    dtrun::sdk::Option("local_rank_argument", DTRUN_TYPE_STRING, nullptr,
                       "adds this and =LOCAL_RANK after the script, such as --local-rank"),
    dtrun::sdk::Option("master_addr", DTRUN_TYPE_STRING, nullptr,
                       "MASTER_ADDR, if not the address that dtrun finds"),
    dtrun::sdk::Option("signals", DTRUN_TYPE_STRING, "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
                       "value of TORCHELASTIC_SIGNALS_TO_HANDLE"),
    dtrun::sdk::Option("virtual_local_rank", DTRUN_TYPE_BOOL, "false",
                       "LOCAL_RANK is 0 everywhere and each rank sees its own GPU only"),
    dtrun::sdk::Option("agent_store", DTRUN_TYPE_BOOL, "true",
                       "dtrun serves torch's TCPStore at MASTER_PORT, as torchrun does")
        .Long("TORCHELASTIC_USE_AGENT_STORE says so. With false, or TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in "
              "the environment, the port is held for rank 0, which serves it."),
};

}  // namespace

DTRUN_SDK_PLUGIN(Torchrun, .name = "torchrun", .version = DTRUN_VERSION, .vendor = "dtrun",
                 .license = "Apache-2.0",
                 .summary = "every rank is a process of its own, with torchrun's environment",
                 .options = kOptions, .option_count = std::size(kOptions))
