#include "core/plan/build.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <new>
#include <sstream>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/base/read_file.h"
#include "core/contract/environment.h"
#include "core/environments/libraries.h"
#include "core/environments/outer.h"
#include "core/options/snapshot.h"
#include "core/options/text.h"
#include "core/plan/at.h"
#include "core/plan/command.h"
#include "core/plan/dialects.h"
#include "core/plan/network.h"
#include "core/plan/output.h"
#include "core/plan/place.h"
#include "core/plan/pmi.h"
#include "core/plan/python.h"
#include "core/plan/steps.h"
#include "core/spec/backend_choice.h"
#include "core/spec/lookup.h"
#include "sdk/helpers/helper.h"

namespace dtrun::plan {
namespace {

// Otherwise a Python program's output comes late, and is lost if the program is killed; and it prints nothing
// if it crashes.
constexpr const char* kOfPython[] = {"PYTHONUNBUFFERED", "PYTHONFAULTHANDLER"};

using Variables = std::map<std::string, std::string>;

RouteInputs RoutesOf(const Inputs& inputs) {
  return {inputs.spec, inputs.device, inputs.hardware, inputs.reported, inputs.network};
}

bool OneHostByMemory(const Inputs& inputs, const Plan& plan) {
  return !inputs.spec.comm.local.is("none") && plan.hosts.size() == 1 && *inputs.spec.comm.emulate_hosts <= 1;
}

// The transport among the ranks of one host, for the run header.
std::string LocalText(const Inputs& inputs, const Plan& plan) {
  if (inputs.spec.comm.local.is("none")) return plan.backend + " alone";
  return OneHostByMemory(inputs, plan)
             ? fmt::format("shared memory; {} is not used on one host", plan.backend)
             : fmt::format("shared memory on each host, {} between them", plan.backend);
}

// Whether the number or placement of ranks depends on reports of other hosts.
bool NeedsReports(const spec::JobSpec& spec) {
  return HasCluster(spec) &&
         (!spec.job.bind.is("none") || spec.job.processes_per_host.as<std::int64_t>() == nullptr);
}

// The program that was looked up last, because most processes have the same.
struct FoundProgram {
  std::string name, path, cwd;
  std::string file;
};

Status FindOnce(const std::string& path, FoundProgram* last, Process* process) {
  if (last->file.empty() || last->name != process->argv[0] || last->path != path ||
      last->cwd != process->cwd) {
    auto program = FindProgram(process->argv[0], path, process->cwd);
    if (!program) return program.error();
    *last = {process->argv[0], path, process->cwd, *std::move(program)};
  }
  process->argv[0] = last->file;
  return {};
}

// Completes one process of the launcher's plan: own dialect, backend, user's variables,
// placeholders, program.
Status Complete(const Inputs& inputs, const Plan& plan, const CommonDialect& common, const OfHost& of_host,
                const environments::RankTable& table, const std::string& program_name, FoundProgram* last,
                Process* process) {
  const spec::JobSpec& spec = inputs.spec;
  ProcessVariables contract;
  contract.ShareAll(common.shown);
  for (const auto& [name, value] : of_host.own) contract.emplace(name, value);
  AddRank(plan, *process, &contract);
  for (const auto& [name, value] : process->env) {
    if (!common.hidden.contains(name) && contract.emplace(name, value)) continue;
    return Error::Of(DTRUN_INTERNAL,
                     "launcher '{}' sets {}, which only dtrun may set; report it to the plugin's "
                     "author",
                     plan.launcher, name);
  }
  auto dialects = DialectVariables(plan, table, *process, contract);
  if (!dialects) return At(spec.job.dialects, dialects.error());
  for (const auto& [name, value] : dialects->set) contract.emplace(name, value);
  process->env = contract;
  for (const auto& [name, value] : UserVariables(spec)) {
    if (contract.contains(name) || common.hidden.contains(name)) {
      return AtEntry(spec, spec.job.env, name,
                     Error::Of(DTRUN_INVALID_ARGUMENT,
                               "'{}' is set by the {} launcher{} for each rank; remove it from job.env", name,
                               plan.launcher, plan.dialects.empty() ? "" : " or by job.dialects"));
    }
    auto expanded = Expand(value, contract);
    if (!expanded)
      return AtEntry(spec, spec.job.env, name,
                     Error{expanded.error().code, name + ": " + expanded.error().text});
    process->env[name] = std::move(*expanded);
  }
  for (const Variables* more : {&common.hidden, &of_host.vendor}) {
    for (const auto& [name, value] : *more) process->env.emplace(name, value);
  }
  for (const auto& [name, value] : dialects->fallback) {
    if (!inputs.environment.contains(name)) process->env.emplace(name, value);
  }
  if (spec.python.horovod.is("shim")) {
    const auto shim = HorovodShim(ProgramFolder());
    if (!shim) return At(spec.python.horovod, shim.error());
    PutFirstOnPythonPath(*shim, inputs.environment, &process->env);
  }
  for (const char* const name : kOfPython) {
    if (!inputs.environment.contains(name)) process->env.emplace(name, "1");
  }

  for (std::string& argument : process->argv) {
    auto expanded = Expand(argument, contract);
    if (!expanded) return At(spec.job.command, expanded.error());
    argument = std::move(*expanded);
  }
  if (!inputs.find_programs) return {};
  std::string path;
  if (const auto own = process->env.find("PATH"); own != process->env.end()) {
    path = own->second;
  } else if (const auto inherited = inputs.environment.find("PATH"); inherited != inputs.environment.end()) {
    path = inherited->second;
  }
  const bool own = process->argv[0] == program_name;
  // A program that the launcher chose, such as mpirun, must not come from a folder that other users
  // may write.
  const Status found = FindOnce(own ? path : helpers::AbsoluteFolders(path), last, process);
  if (!found && own) return At(spec.job.command, found.error());
  return found ? Status() : AtPlugin(spec.launcher_options, spec.launcher.name, found.error());
}

// One line for all hosts, or one part for each where they differ.
std::string BindingText(const Plan& plan, const std::vector<Placement>& placements) {
  const auto text = [&](std::size_t host) { return placements[host].processors.text; };
  constexpr std::size_t kMost = 64;
  bool same = true;
  std::string each;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    same = same && text(i) == text(0);
    if (i < kMost) each += fmt::format("{}{}: {}", i == 0 ? "" : "; ", plan.hosts[i].name, text(i));
  }
  if (placements.size() > kMost) each += fmt::format("; and {} hosts", placements.size() - kMost);
  const bool several = placements.size() > 1 && placements[0].processors.bound();
  return (several ? "by local rank on each host: " : "") + (same ? text(0) : each);
}

// What a host has. In a draft, a root without GPUs takes the hosts of a job that counts on them to have one
// for each rank.
Hardware AssumedOn(const Inputs& inputs, std::size_t host, int ranks) {
  if (host < inputs.reported.size()) return inputs.reported[host];
  Hardware hardware = Assumed(inputs.spec, inputs.hardware, static_cast<int>(host));
  const bool wanted =
      inputs.spec.job.gpu_visibility.is("own") || inputs.spec.job.processes_per_host.is("gpu");
  if (!HasCluster(inputs.spec) || !wanted || !hardware.gpus.empty() || hardware.gpus_given) return hardware;
  for (int i = 0; i < ranks; ++i) hardware.gpus.push_back({"", -1, std::to_string(i)});
  return hardware;
}

// What dtrun's own environment says of GPUs, where cluster.gpus says something else; empty: it does not.
std::string ReplacedList(const Inputs& inputs, const Plan& plan, const std::vector<Placement>& placements) {
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const auto inherited = inputs.environment.find(placements[i].gpu_variable);
    if (inherited == inputs.environment.end() || !placements[i].gpu_lists.empty()) continue;
    return fmt::format("{}='{}' of dtrun's environment does not reach the hosts in cluster.gpus, such as {}",
                       inherited->first, inherited->second, plan.hosts[i].name);
  }
  return {};
}

// Where the ranks run, by host.
Result<std::vector<Placement>> PlaceAll(const Inputs& inputs, Plan* plan) {
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < plan->hosts.size(); ++i) {
    Host& host = plan->hosts[i];
    auto placed = Place(inputs.spec, AssumedOn(inputs, i, host.local_size), host.local_size,
                        inputs.device.backend.has_value() || inputs.device.by_host);
    if (!placed && plan->hosts.size() > 1) {
      return Error::Of(placed.error().code, "host {}: {}", host.name, placed.error().text);
    }
    if (!placed) return placed.error();
    host.cores = placed->processors.cores;
    host.sees_gpus = !AssumedOn(inputs, i, host.local_size).gpus.empty();
    placements.push_back(*std::move(placed));
  }
  plan->binding = BindingText(*plan, placements);
  const std::string& asked = *inputs.spec.job.bind;
  if (asked != "auto" && plan->binding.starts_with("none:"))
    plan->warnings.push_back(
        fmt::format("job.bind = \"{}\" binds no rank: {}", asked, plan->binding.substr(6)));
  if (const std::string& variable = placements[0].gpu_variable; !placements[0].gpu_lists.empty()) {
    plan->notes.push_back(
        fmt::format("{} is set for each rank; a program sees its first GPU as device 0", variable));
  }
  if (std::string replaced = ReplacedList(inputs, *plan, placements); !replaced.empty())
    plan->notes.push_back(std::move(replaced));
  return placements;
}

// Names what listens outside cluster.port_range, unless the system's own range lies within it; empty:
// nothing.
std::string UnkeptPorts(const spec::JobSpec& spec) {
  if (spec.ports.last == 0) return {};
  std::istringstream usual(FirstLineOf("/proc/sys/net/ipv4/ip_local_port_range"));
  int first = 0, last = 0;
  if (usual >> first >> last && first >= spec.ports.first && last <= spec.ports.last) return {};
  return fmt::format(
      "cluster.port_range={} does not bind NCCL, nor torch's own Gloo and TensorPipe: they listen on ports "
      "of the "
      "system, {}-{} (net.ipv4.ip_local_port_range); set that to the same range on all hosts if they have to",
      *spec.cluster.port_range, first, last);
}

std::vector<std::string> VariablesOf(const spec::JobSpec& spec) {
  std::vector<std::string> names;
  for (const options::Spec& row : spec.schema()) names.push_back(spec::EnvironmentName(row.key));
  return names;
}

// The plugins that the config names.
std::vector<std::string> PluginsOf(const spec::JobSpec& spec) {
  std::vector<std::string> names = spec::BackendNames(spec);
  names.push_back(*spec.launcher.name);
  names.insert(names.end(), spec.devices.begin(), spec.devices.end());
  return names;
}

Result<Plan> Made(const Inputs& inputs, const std::vector<Host>& hosts) {
  const spec::JobSpec& spec = inputs.spec;
  auto rules = NetworkRules(spec, hosts);
  if (!rules) return rules.error();

  Plan plan;
  plan.job = *spec.job.name;
  plan.hosts = hosts;
  plan.network_rules = *std::move(rules);
  plan.notes = environments::OuterNotes(inputs.environment);
  if (!spec.hosts_from.platform.empty())
    plan.notes.push_back(fmt::format("the hosts are those of {} (cluster.from)", spec.hosts_from.platform));
  for (std::string& option : spec::PluginOptionsSet(spec)) plan.notes.push_back(std::move(option));
  plan.warnings = IgnoredVariables(inputs.environment, VariablesOf(spec), PluginsOf(spec));
  if (plan.hosts.size() == 1 && !spec.cluster.from.has()) {
    std::string wider = environments::OneOfSeveral(inputs.environment);
    if (wider.empty()) wider = environments::UnusedAllocation(inputs.environment);
    if (!wider.empty()) plan.warnings.push_back(std::move(wider));
  }
  // Inside an srun task the distribution applies to dtruns, one per node, and not to ranks.
  if (spec.hosts_from.platform == "slurm" && !spec.cluster.connect.is("manual")) {
    std::vector<int> ranks;
    for (const Host& host : plan.hosts) ranks.push_back(host.local_size);
    if (std::string order = UnusedDistribution(inputs.environment, ranks); !order.empty())
      plan.warnings.push_back(std::move(order));
  }
  std::vector<Hardware> known = inputs.reported;
  if (known.empty() && !HasCluster(spec)) known.push_back(inputs.hardware);
  for (std::string& list : GpuListWarnings(spec, known)) plan.warnings.push_back(std::move(list));
  plan.backend = inputs.backend.shown();
  if (inputs.network != nullptr) AddNetwork(*inputs.network, &plan);
  if (spec.watch.on_stall.is("restart") && *spec.restart.max == 0 && *spec.watch.stall != "off") {
    plan.warnings.emplace_back(
        "watch.on_stall = \"restart\" ends a job without progress but restarts none, as restart.max is 0");
  }
  const std::string unused = plan.hosts.size() == 1 ? UnusedInterface(spec) : "";
  if (!unused.empty()) plan.warnings.push_back(unused);
  if (const std::string unkept = UnkeptPorts(spec); plan.hosts.size() > 1 && !unkept.empty()) {
    const bool nccl = options::LowestOf(plan.backend) == "nccl" ||
                      (inputs.device.backend && options::LowestOf(inputs.device.backend->shown()) == "nccl");
    (nccl ? plan.warnings : plan.notes).push_back(unkept);
  }
  plan.launcher = *spec.launcher.name;
  AddFacts(inputs.backend, &plan);
  if (plan.backend != "none") plan.backend_facts.emplace_back("local", LocalText(inputs, plan));
  if (Status routed = AddRoutes(RoutesOf(inputs), &plan); !routed) return routed.error();
  plan.backend_idle = plan.routes.empty() && OneHostByMemory(inputs, plan);
  auto placements = PlaceAll(inputs, &plan);
  if (!placements) return placements.error();
  plan.master_port = static_cast<int>(*spec.job.master_port);
  if (plan.master_port != 0) plan.master_port_place = PlacePrefix(spec.job.master_port);
  const auto log_dir = options::ExpandPath(*spec.logs.dir);
  if (!log_dir) return At(spec.logs.dir, log_dir.error());
  plan.log_dir = (std::filesystem::path(inputs.cwd) / *log_dir).lexically_normal().string();
  plan.log_dir_is_default = !spec.logs.dir.given();
  plan.log_dir_place = PlacePrefix(spec.logs.dir);
  const auto log_mode = LogModeOf(spec);
  if (!log_mode) return log_mode.error();
  plan.log_mode = *log_mode;
  auto style = StyleOf(spec);
  if (!style) return style.error();
  plan.output = *std::move(style);
  plan.grace = *spec.job.grace;
  if (spec.cluster.connect.is("manual")) plan.given = spec::OptionsGiven(spec);
  if (spec.job.memory.has()) plan.memory = static_cast<std::uint64_t>(*spec.job.memory);
  if (NeedsReports(spec) && inputs.reported.empty()) {
    const bool without = inputs.hardware.gpus.empty() && plan.hosts.front().sees_gpus;
    plan.notes.push_back(without
                             ? "the plan assumes that each rank has a GPU, because this host has none; a run "
                               "queries the hosts for their processors and GPUs"
                             : "the plan assumes that all hosts have as many processors and GPUs as this "
                               "one; a run queries them");
  }

  plan.withheld = environments::Withheld();
  if (Status chosen = ChooseDialects(spec, &plan); !chosen) return chosen.error();

  const Variables& user = UserVariables(spec);
  if (plan.master_port == 0) {
    const std::string port = UnusedMasterPort(inputs.environment, user);
    if (!port.empty()) plan.warnings.push_back(port);
  }
  std::vector<Variables> wanted;
  for (std::size_t i = 0; i < plan.hosts.size(); ++i) {
    const auto& env = InfoOf(inputs.backend, i).env;
    wanted.emplace_back();
    if (inputs.device.backend) {
      const auto& of_device = InfoOf(*inputs.device.backend, i).env;
      wanted.back().insert(of_device.begin(), of_device.end());
    }
    wanted.back().insert(env.begin(), env.end());
    if (spec.ports.last != 0) wanted.back().merge(environments::PortVariables(spec.ports));
  }
  std::vector<Variables> vendor =
      VendorEnvironments({plan.hosts, wanted, inputs.network, user, inputs.environment}, &plan.warnings);
  const std::string cwd = spec.job.cwd.value_or(inputs.cwd);
  if (Status usable = CheckFolder(spec, cwd); !usable) return usable.error();
  if (Status beside = CheckBeside(spec, cwd); !beside) return beside.error();
  const std::vector<std::string> command = CommandOf(spec, inputs.environment, cwd);
  auto processes = AskLauncher(inputs, plan, command, cwd);
  if (!processes) return processes.error();
  plan.processes = std::move(processes->processes);
  if (std::string missing = RanksThatAreMissing(plan.output, plan.world_size()); !missing.empty())
    plan.warnings.push_back(std::move(missing));
  plan.notes.insert(plan.notes.end(), processes->notes.begin(), processes->notes.end());
  const CommonDialect common = CommonDialectOf(inputs, plan);
  std::vector<OfHost> of_hosts;
  for (std::size_t i = 0; i < plan.hosts.size(); ++i)
    of_hosts.push_back({HostDialect(inputs, plan, i), std::move(vendor[i])});
  environments::RankTable table =
      plan.dialects.empty() ? environments::RankTable() : TableOf(plan);  // one text per rank
  table.max_restarts = static_cast<int>(*spec.restart.max);
  std::shared_ptr<const Variables> first;
  FoundProgram program;
  for (Process& process : plan.processes) {
    const auto host = static_cast<std::size_t>(process.host);
    Status status =
        Complete(inputs, plan, common, of_hosts[host], table, command.front(), &program, &process);
    if (!status) return status.error();
    const Placement& placement = (*placements)[host];
    if (placement.gpu_lists.empty() && process.env.contains(placement.gpu_variable)) {
      return At(spec.cluster.gpus,
                "it sets {} of the ranks on {}, and so does launcher '{}'; leave one of them out",
                placement.gpu_variable, plan.hosts[host].name, plan.launcher);
    }
    PutInPlace(placement, &process);
    if (first == nullptr) first = std::make_shared<const Variables>(process.env.begin(), process.env.end());
    process.env.ShareWith(first);
  }
  if (!inputs.find_programs) return plan;  // the PMI service depends on the program
  if (Status served = ServePmi(inputs, &plan); !served) return served.error();
  return plan;
}

}  // namespace

Result<Plan> Build(const Inputs& inputs) {
  const auto hosts = PlaceRanks(inputs.spec, inputs.hardware, inputs.reported);
  if (!hosts) return hosts.error();
  const std::string what = fmt::format("planning {} ranks on {} hosts",
                                       hosts->back().first_rank + hosts->back().local_size, hosts->size());
  const MemoryUser user(what);
  const auto out_of_memory = [&](const std::string& text) {
    return Error::Of(DTRUN_OUT_OF_MEMORY, "{}: {}", what, text);
  };
  try {
    auto plan = Made(inputs, *hosts);
    return plan || plan.error().code != DTRUN_OUT_OF_MEMORY ? std::move(plan)
                                                            : out_of_memory(plan.error().text);
  } catch (const std::bad_alloc& thrown) {
    return out_of_memory(Exhausted(thrown));
  }
}

}  // namespace dtrun::plan
