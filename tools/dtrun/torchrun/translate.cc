#include "tools/dtrun/torchrun/translate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "core/base/text.h"

namespace dtrun::torchrun {
namespace {

constexpr char kNullDevice[] = "/dev/null";
constexpr char kSelf[] = "dtrun torchrun";

// A valid job name derived from the script's name.
std::string JobName(const Arguments& arguments) {
  const std::filesystem::path script(arguments.training_script);
  std::string name = arguments.module ? arguments.training_script : script.stem().string();
  name.resize(std::min<std::size_t>(name.size(), 64));
  std::ranges::replace_if(
      name, [](char c) { return !IsLetterOrDigit(c) && c != '.' && c != '_' && c != '-'; }, '-');
  return name.empty() || name == "." || name == ".." ? "job" : name;
}

// The spelling of --local-rank that the script expects: with '_' before torch 2.0.
std::string LocalRankArgument(const Surroundings& surroundings) {
  const auto has = [&](const char* spelling) {
    return surroundings.script_text && surroundings.script_text->find(spelling) != std::string::npos;
  };
  return has("--local_rank") && !has("--local-rank") ? "--local_rank" : "--local-rank";
}

// Whether dtrun ends a job on this signal.
bool EndsTheJob(std::string_view name) {
  return name == "SIGTERM" || name == "SIGINT" || name == "SIGHUP" || name == "SIGQUIT";
}

// The job.bind value for a mode of torch/numa/binding.py; null: unknown mode.
const char* PolicyOf(std::string_view mode) {
  if (mode == "node") return "per-numa";
  if (mode == "socket") return "per-socket";
  if (mode == "exclusive" || mode == "core-complex") return "compact";
  return nullptr;
}

class Translator {
 public:
  Translator(const Arguments& arguments, const Surroundings& surroundings)
      : arguments_(arguments), surroundings_(surroundings) {}

  Result<Translation> Run() {
    if (Status refused = RefuseUnserved(); !refused) return refused.error();
    const auto rendezvous = RendezvousOf(arguments_, surroundings_.uuid, surroundings_.meet_here);
    if (!rendezvous) return rendezvous.error();
    const std::vector<spec::Given> cluster = ClusterSettings(arguments_, *rendezvous);
    out_.run_id = arguments_.rdzv_id;
    out_.secret = SecretOf(arguments_, *rendezvous);

    Base("backend.name", "none");
    Base("output.prefix", "none");
    Base("job.grace", "30s");
    Base("cluster.join_timeout", arguments_.rdzv_backend == "static" ? "900s" : "600s");
    Base("job.name", JobName(arguments_));
    Give("launcher.name", "torchrun", "");
    AddCommand();
    AddRanks(*rendezvous);
    AddEnding();
    AddLogs(*rendezvous);
    out_.given.insert(out_.given.end(), cluster.begin(), cluster.end());
    AddLoneNodeNote(*rendezvous);
    AddMasterNote(*rendezvous);
    AddNotes();
    return std::move(out_);
  }

 private:
  Status RefuseUnserved() const {
    if (arguments_.logs_specs && *arguments_.logs_specs != "default") {
      return Bad(
          fmt::format("{}={}: a Python plug-in of torchrun cannot be loaded; use --log-dir, --redirects "
                      "and --tee",
                      PlaceOf("logs_specs"), *arguments_.logs_specs));
    }
    if (arguments_.numa_binding && PolicyOf(*arguments_.numa_binding) == nullptr) {
      return Bad(fmt::format("{}={}: expected node, socket, exclusive or core-complex",
                             PlaceOf("numa_binding"), *arguments_.numa_binding));
    }
    const std::string& handler = arguments_.event_log_handler;
    if (handler != "null" && handler != "console" && handler != "dynamic_rendezvous") {
      return Bad(
          fmt::format("{}={}: handlers of torch's events cannot be loaded; leave it out, verdict.json in "
                      "the run directory says how it ended",
                      PlaceOf("event_log_handler"), handler));
    }
    return {};
  }

  // The user's own words, from which the launcher builds a command.
  void AddCommand() {
    std::vector<std::string> command = {arguments_.training_script};
    command.insert(command.end(), arguments_.training_script_args.begin(),
                   arguments_.training_script_args.end());
    out_.given.push_back({"job.command", std::move(command), {DTRUN_ORIGIN_COMMAND_LINE, "training_script"}});
    if (arguments_.run_path) {
      Give("launcher.options.entry", "path", "run_path");
    } else if (arguments_.no_python) {
      Give("launcher.options.entry", "command", "no_python");
    } else {
      Give("launcher.options.entry", arguments_.module ? "module" : "script", "module");
    }
    Give("launcher.options.placeholders", "torchrun", "");
    if (!arguments_.use_env) {
      out_.base.push_back({"launcher.options.local_rank_argument",
                           LocalRankArgument(surroundings_),
                           {DTRUN_ORIGIN_DEFAULT, "dtrun torch.distributed.launch"}});
    }
  }

  void AddRanks(const Rendezvous& rendezvous) {
    const auto number = ParseInt(arguments_.nproc_per_node);
    Give("job.processes_per_host", number ? std::to_string(*number) : arguments_.nproc_per_node,
         "nproc_per_node");
    Give("launcher.options.run_id", rendezvous.run_id, "rdzv_id");
    Give("launcher.options.role", arguments_.role, "role");
    Give("launcher.options.signals", arguments_.signals_to_handle, "signals_to_handle");
    if (arguments_.numa_binding) Give("job.bind", PolicyOf(*arguments_.numa_binding), "numa_binding");
    if (arguments_.virtual_local_rank) {
      Give("launcher.options.virtual_local_rank", "true", "virtual_local_rank");
    }
    if (rendezvous.most_nodes > 1) {
      if (arguments_.local_addr) Give("launcher.options.master_addr", *arguments_.local_addr, "local_addr");
      return;
    }
    const char* endpoint = arguments_.rdzv_endpoint.empty() ? "master_port" : "rdzv_endpoint";
    if (rendezvous.port) Give("job.master_port", std::to_string(*rendezvous.port), endpoint);
    if (!rendezvous.host.empty()) {
      Give("launcher.options.master_addr", rendezvous.host,
           arguments_.rdzv_endpoint.empty() ? "master_addr" : "rdzv_endpoint");
    } else if (arguments_.local_addr) {
      Give("launcher.options.master_addr", *arguments_.local_addr, "local_addr");
    }
  }

  void AddEnding() {
    constexpr char kVariable[] = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
    const auto variable = surroundings_.environment.find(kVariable);
    if (arguments_.shutdown_timeout) {
      Give("job.grace", fmt::format("{}s", *arguments_.shutdown_timeout), "shutdown_timeout");
    } else if (variable != surroundings_.environment.end()) {
      out_.given.push_back({"job.grace", variable->second + "s", {DTRUN_ORIGIN_ENVIRONMENT, kVariable}});
    }
  }

  void AddLogs(const Rendezvous& rendezvous) {
    out_.keeps_logs = arguments_.log_dir != kNullDevice;
    const bool chosen = out_.keeps_logs && arguments_.log_dir && !arguments_.log_dir->empty();
    const std::string& base = chosen ? *arguments_.log_dir : surroundings_.log_base;
    Give("logs.dir", fmt::format("{}/{}_{}", base, rendezvous.run_id, surroundings_.random), "log_dir");
    Give("launcher.options.error_files", out_.keeps_logs ? "attempt" : "none", "log_dir");
  }

  // As in torchrun 2.x, a single node ignores rendezvous spec.
  void AddLoneNodeNote(const Rendezvous& rendezvous) {
    if (rendezvous.most_nodes > 1 || arguments_.standalone) return;
    std::vector<std::string> ignored;
    const auto add = [&](std::string_view name, const std::string& value) {
      ignored.push_back(fmt::format("{}={}", PlaceOf(name), value));
    };
    const auto elsewhere = [](const std::string& text) {
      const auto endpoint = MeetingPlace(text);
      return endpoint && !endpoint->host.empty() && !IsLoopback(endpoint->host);
    };
    const bool fixed = arguments_.rdzv_backend == "static";
    if (fixed && arguments_.node_rank != 0) add("node_rank", std::to_string(arguments_.node_rank));
    const bool kept = fixed && rendezvous.port;  // as the address of rank 0
    if (!kept && !arguments_.Given("nnodes")) {
      if (fixed && elsewhere(arguments_.master_addr)) add("master_addr", arguments_.master_addr);
      if (!fixed && elsewhere(arguments_.rdzv_endpoint)) add("rdzv_endpoint", arguments_.rdzv_endpoint);
    }
    if (ignored.empty()) return;
    Note(fmt::format("{} {} ignored, as by torchrun: {}; for more nodes add --nnodes N",
                     fmt::join(ignored, ", "), ignored.size() == 1 ? "is" : "are",
                     arguments_.Given("nnodes")
                         ? PlaceOf("nnodes") + " is 1"
                         : std::string("--nnodes is not given, and so there is one node")));
  }

  // A note and no error: an address may lead here in a way that this host does not know, such as a Kubernetes
  // service.
  void AddMasterNote(const Rendezvous& rendezvous) {
    if (rendezvous.most_nodes > 1 || rendezvous.host.empty() || surroundings_.leads_here(rendezvous.host))
      return;
    Note(fmt::format(
        "{}={} does not lead to this host ({}), where rank 0 of this one-node job listens: ranks that cannot "
        "connect wait for torch's timeout; write --standalone, or --nnodes N if there are more nodes",
        PlaceOf(arguments_.rdzv_endpoint.empty() ? "master_addr" : "rdzv_endpoint"), rendezvous.host,
        fmt::join(surroundings_.addresses, ", ")));
  }

  void AddVariableNotes() {
    std::vector<std::string> known;
    for (const Option& option : Options(Program::kLaunch)) known.push_back(option.Environment());
    const auto& all = surroundings_.environment;
    for (auto one = all.lower_bound("PET_"); one != all.end() && one->first.starts_with("PET_"); ++one) {
      if (std::ranges::find(known, one->first) != known.end()) continue;
      const auto meant = Nearest(one->first, known);
      Note(fmt::format("{} is ignored: torchrun has no such option; {}", one->first,
                       meant ? fmt::format("did you mean {}?", *meant) : "unset it"));
    }
  }

  void AddNotes() {
    AddVariableNotes();
    if (arguments_.rdzv_backend != "static" && arguments_.node_rank != 0) {
      Note(fmt::format("{}={} is for --rdzv-backend=static only, and is ignored", PlaceOf("node_rank"),
                       arguments_.node_rank));
    }
    AddSignalNotes();
    if (arguments_.numa_binding == "core-complex") {
      Note(
          fmt::format("{}=core-complex: each rank has an equal share of the cores near its GPU, whatever "
                      "caches they have",
                      PlaceOf("numa_binding")));
    }
    if (arguments_.event_log_handler == "console") {
      Note(fmt::format("{}=console: torch's events are not printed; verdict.json has how the job ended",
                       PlaceOf("event_log_handler")));
    }
    const auto set = [&](const char* name) { return surroundings_.environment.contains(name); };
    const auto timer = surroundings_.environment.find("TORCHELASTIC_ENABLE_FILE_TIMER");
    if (timer != surroundings_.environment.end() && timer->second == "1") {
      Note("TORCHELASTIC_ENABLE_FILE_TIMER=1: torch's file timer is not supported");
    }
    if (set("TORCHELASTIC_HEALTH_CHECK_PORT")) {
      Note("TORCHELASTIC_HEALTH_CHECK_PORT: dtrun does not open this port");
    }
  }

  void AddSignalNotes() {
    for (const std::string_view name : Split(arguments_.signals_to_handle, ',')) {
      if (name.empty()) continue;
      if (name == "SIGUSR1" || name == "SIGUSR2") {
        Note(fmt::format("{}: {} is forwarded to every rank, and the job continues until they end",
                         PlaceOf("signals_to_handle"), name));
      } else if (!EndsTheJob(name)) {
        Note(fmt::format("{}: {} is not forwarded", PlaceOf("signals_to_handle"), name));
      }
    }
  }

  void Base(const char* key, std::string value) {
    out_.base.push_back({key, std::move(value), {DTRUN_ORIGIN_DEFAULT, kSelf}});
  }

  // `name`: the option that caused it. torchrun's own defaults have the program as origin.
  void Give(const char* key, std::string value, std::string_view name) {
    out_.given.push_back({key, std::move(value), arguments_.OriginOf(name)});
  }

  void Note(std::string text) { out_.notes.push_back(std::move(text)); }
  std::string PlaceOf(std::string_view name) const { return arguments_.PlaceOf(name); }

  const Arguments& arguments_;
  const Surroundings& surroundings_;
  Translation out_;
};

}  // namespace

Result<Translation> Translate(const Arguments& arguments, const Surroundings& surroundings) {
  return Translator(arguments, surroundings).Run();
}

}  // namespace dtrun::torchrun
