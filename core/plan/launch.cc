#include "core/plan/launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/plugin_error.h"
#include "core/base/printable.h"
#include "core/environments/outer.h"
#include "core/plan/at.h"

namespace dtrun::plan {
namespace {

// What the sink's callbacks fill. Exceptions must not cross the plugin, so failures of our
// own allocation end the process as anywhere else in core.
struct Collector {
  Launched launched;
  const std::vector<std::string>* command;
  std::string cwd;
  std::string wrong;  // the first thing that no process can have
};

void Wrong(Collector* collector, const std::string& wrong) {
  if (collector->wrong.empty()) collector->wrong = wrong;
}

void OnProcess(void* context, const dtrun_process* process) noexcept {
  auto* collector = static_cast<Collector*>(context);
  Process out;
  out.host = process->host_index;
  out.rank = process->rank;
  out.local_rank = process->local_rank;
  out.rank_count = process->rank_count;
  if (process->argv == nullptr) {
    out.argv = *collector->command;
  } else {
    for (std::uint64_t i = 0; i < process->argc; ++i) {
      if (process->argv[i] == nullptr)
        Wrong(collector, fmt::format("argument {} of rank {} is null", i, out.rank));
      out.argv.emplace_back(process->argv[i] == nullptr ? "" : process->argv[i]);
    }
  }
  for (std::uint64_t i = 0; i < process->env_count; ++i) {
    const dtrun_env_entry& entry = process->env[i];
    const std::string name = entry.name == nullptr ? "" : entry.name;
    if (name.empty() || name.find('=') != name.npos || entry.value == nullptr) {
      Wrong(collector, fmt::format("variable {} of rank {} is '{}'{}", i, out.rank, Printable(name),
                                   entry.value == nullptr ? " without a value" : ""));
      continue;
    }
    out.env[name] = entry.value;
  }
  out.cwd = process->cwd == nullptr ? collector->cwd : process->cwd;
  collector->launched.processes.push_back(std::move(out));
}

void OnNote(void* context, const char* text) noexcept {
  if (text != nullptr) static_cast<Collector*>(context)->launched.notes.push_back(Printable(text));
}

// The job as the plugin sees it, and the storage behind its pointers.
struct JobView {
  dtrun_job job;
  std::vector<dtrun_job_host> hosts;
  std::vector<const char*> argv;
  const Inputs* inputs;
  const Plan* plan;
};

// `job` is the first member of JobView.
const char* Inherited(const dtrun_job* job, const char* name) noexcept {
  const JobView& view = *reinterpret_cast<const JobView*>(job);
  const Inputs& inputs = *view.inputs;
  const auto& user = UserVariables(inputs.settings);
  if (const auto found = user.find(name); found != user.end()) return found->second.c_str();
  if (environments::MatchesAny(name, view.plan->withheld)) return nullptr;
  const auto found = inputs.environment.find(name);
  return found == inputs.environment.end() ? nullptr : found->second.c_str();
}

Status CheckRanks(const Plan& plan, const std::vector<Process>& processes) {
  std::vector<int> owners(static_cast<std::size_t>(plan.world_size()), 0);
  for (const Process& process : processes) {
    const bool valid = process.host >= 0 && process.host < static_cast<int>(plan.hosts.size()) &&
                       process.rank >= 0 && process.rank_count >= 1 &&
                       process.rank + process.rank_count <= plan.world_size() && !process.argv.empty();
    if (!valid) {
      return Error{DTRUN_INTERNAL,
                   fmt::format("launcher '{}' planned an impossible process: rank {}, host {}", plan.launcher,
                               process.rank, process.host)};
    }
    for (int rank = process.rank; rank < process.rank + process.rank_count; ++rank) {
      ++owners[static_cast<std::size_t>(rank)];
    }
  }
  for (std::size_t rank = 0; rank < owners.size(); ++rank) {
    if (owners[rank] != 1) {
      return Error{DTRUN_INTERNAL, fmt::format("launcher '{}' planned rank {} {} times instead of once",
                                               plan.launcher, rank, owners[rank])};
    }
  }
  return {};
}

}  // namespace

Result<Launched> AskLauncher(const Inputs& inputs, const Plan& plan, const std::string& cwd) {
  const config::Settings& settings = inputs.settings;
  JobView view{};
  DTRUN_INIT(view.job);
  view.inputs = &inputs;
  view.plan = &plan;
  for (const Host& host : plan.hosts) {
    dtrun_job_host out;
    DTRUN_INIT(out);
    out.name = host.name.c_str();
    out.first_rank = host.first_rank;
    out.local_size = host.local_size;
    out.cores = host.cores;
    view.hosts.push_back(out);
  }
  const std::vector<std::string>& command = settings.List("job.command");
  for (const std::string& argument : command) view.argv.push_back(argument.c_str());
  view.job.name = plan.job.c_str();
  view.job.argv = view.argv.data();
  view.job.argc = view.argv.size();
  view.job.cwd = cwd.c_str();
  view.job.hosts = view.hosts.data();
  view.job.host_count = view.hosts.size();
  view.job.world_size = plan.world_size();
  view.job.master_addr = plan.hosts.front().address.c_str();
  view.job.master_port = kTokenPort;
  view.job.inherited = &Inherited;
  view.job.run_dir = kTokenRunDir;
  view.job.generation = kTokenGeneration;
  view.job.program = inputs.program.c_str();
  view.job.bind = settings.Text("job.bind").c_str();

  Collector collector{{}, &command, cwd, {}};
  dtrun_plan_sink sink;
  DTRUN_INIT(sink);
  sink.context = &collector;
  sink.process = &OnProcess;
  sink.note = &OnNote;

  const plugin::Plugin& launcher = inputs.launcher;
  const dtrun_options options = settings.SnapshotOf("launcher.options.");
  const std::string context = fmt::format("launcher '{}'", plan.launcher);
  PluginError error;
  dtrun_instance* instance = nullptr;
  dtrun_status status = launcher.table().init(&launcher.host(), &options, &instance, &error);
  if (status != DTRUN_OK) return AtPlugin(settings, "launcher", Explained(status, error, context));
  status = launcher.launcher().plan(instance, &view.job, &sink, &error);
  launcher.table().shutdown(instance);
  if (status != DTRUN_OK) return AtPlugin(settings, "launcher", Explained(status, error, context));
  if (!collector.wrong.empty())
    return Error{DTRUN_INTERNAL,
                 fmt::format("{} planned a process that cannot be: {}; report it to the plugin's author",
                             context, collector.wrong)};
  if (Status ranks = CheckRanks(plan, collector.launched.processes); !ranks) return ranks.error();
  std::ranges::sort(collector.launched.processes, {}, &Process::rank);
  return std::move(collector.launched);
}

}  // namespace dtrun::plan
