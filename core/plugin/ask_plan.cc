#include "core/plugin/ask_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/plugin/given_struct.h"
#include "core/plugin/search_path.h"
#include "core/plugin/services.h"
#include "dtrun/plugin/failure.hpp"

namespace dtrun::plugin {
namespace {

// Parts keep either end from holding a large plan as text, and show the parent that the child makes
// progress.
constexpr std::size_t kProcessesOfAPart = 4096;
constexpr std::size_t kMostNotes = 4096;
constexpr std::size_t kMostNoteBytes = 4096;  // of one

// The state of the sink's callbacks. Exceptions must not cross the plugin.
struct Collector {
  LaunchPlan plan;
  const LaunchJob* job;
  std::string wrong;  // the first invalid answer
  const SendPart& send;
  std::shared_ptr<const ProcessVariables::Map> shared = {};  // variables of the first process
  std::size_t notes = 0;
  bool out_of_memory = false;  // in our code
  Status sent = {};
};

// Returns the error to the plugin as well, which should pass it on.
dtrun_status Wrong(Collector* collector, const std::string& wrong, dtrun_error* err) {
  if (collector->wrong.empty()) collector->wrong = wrong;
  return Error{DTRUN_INVALID_ARGUMENT, wrong}.CopyTo(err);
}

// The error for a variable, or empty.
std::string AddVariable(const dtrun_env_entry& entry, PlannedProcess* out) {
  const std::string name = entry.name == nullptr ? "" : entry.name;
  const bool unset = (entry.flags & DTRUN_ENV_UNSET) != 0;
  if (const std::string wrong = UnknownFlags(entry.flags, DTRUN_ENV_UNSET); !wrong.empty())
    return fmt::format("'{}': {}", Printable(name), wrong);
  if (name.empty() || name.find('=') != name.npos) return fmt::format("'{}'", Printable(name));
  if (out->env.contains(name) || std::ranges::find(out->unset, name) != out->unset.end())
    return fmt::format("'{}' a second time", Printable(name));
  if (unset) {
    out->unset.push_back(name);
  } else if (entry.value == nullptr) {
    return fmt::format("'{}' without a value", Printable(name));
  } else {
    out->env[name] = entry.value;
  }
  return {};
}

dtrun_status AddProcess(Collector* collector, const dtrun_process* from, dtrun_error* err) {
  if (const std::string wrong = TooSmall(from, "a dtrun_process"); !wrong.empty())
    return Wrong(collector, wrong, err);
  const dtrun_process process = sdk::internal::ReadStruct(from);
  if (const std::string wrong = UnknownFlags(process.flags, 0); !wrong.empty())
    return Wrong(collector, fmt::format("rank {}: {}", process.rank, wrong), err);
  PlannedProcess out;
  out.host = process.host_index;
  out.rank = process.rank;
  out.local_rank = process.local_rank;
  out.rank_count = process.rank_count;
  if (process.argv == nullptr) {
    out.argv = collector->job->argv;
  } else {
    if (process.argc == 0)
      return Wrong(collector, fmt::format("rank {} has arguments of its own and no program", out.rank), err);
    for (std::uint64_t i = 0; i < process.argc; ++i) {
      if (process.argv[i] == nullptr)
        return Wrong(collector, fmt::format("argument {} of rank {} is null", i, out.rank), err);
      out.argv.emplace_back(process.argv[i]);
    }
  }
  const GivenArray variables(process.env);
  if (process.env_count != 0 && !variables.valid())
    return Wrong(collector, fmt::format("a variable of rank {} has {} bytes", out.rank, variables.stride()),
                 err);
  for (std::uint64_t i = 0; i < process.env_count; ++i) {
    if (const std::string wrong = AddVariable(variables[i], &out); !wrong.empty())
      return Wrong(collector, fmt::format("variable {} of rank {} is {}", i, out.rank, wrong), err);
  }
  out.cwd = process.cwd == nullptr ? collector->job->cwd : process.cwd;
  std::vector<PlannedProcess>& processes = collector->plan.processes;
  if (collector->shared == nullptr)
    collector->shared = std::make_shared<const ProcessVariables::Map>(out.env.begin(), out.env.end());
  out.env.ShareWith(collector->shared);
  processes.push_back(std::move(out));
  if (processes.size() < kProcessesOfAPart) return DTRUN_OK;
  if (collector->sent) collector->sent = collector->send(collector->plan);
  collector->plan = {};
  return collector->sent ? DTRUN_OK : collector->sent.error().CopyTo(err);
}

dtrun_status OnProcess(void* context, const dtrun_process* from, dtrun_error* err) noexcept {
  auto* collector = static_cast<Collector*>(context);
  try {
    return AddProcess(collector, from, err);
  } catch (const std::bad_alloc&) {
    collector->out_of_memory = true;
    collector->plan = {};  // frees memory for the error
    return Error{DTRUN_OUT_OF_MEMORY, "out of memory"}.CopyTo(err);
  }
}

dtrun_status OnNote(void* context, dtrun_string text, dtrun_error* err) noexcept {
  auto* collector = static_cast<Collector*>(context);
  if (text.size > kMostNoteBytes) {
    return Wrong(collector, fmt::format("a note has {} bytes, of at most {}", text.size, kMostNoteBytes),
                 err);
  }
  if (collector->notes++ == kMostNotes)
    return Wrong(collector, fmt::format("it has more than {} notes", kMostNotes), err);
  collector->plan.notes.push_back(Printable(View(text)));
  return DTRUN_OK;
}

// The job in the plugin's format, and the storage behind its pointers.
struct JobView {
  dtrun_job job;
  std::vector<dtrun_job_host> hosts;
  std::vector<const char*> argv;
  const LaunchJob* from;
};

// `job` is the first member of JobView.
const char* Inherited(const dtrun_job* job, const char* name) noexcept {
  const LaunchJob& from = *reinterpret_cast<const JobView*>(job)->from;
  const auto found = from.inherited.find(name);
  return found == from.inherited.end() ? nullptr : found->second.c_str();
}

void Fill(const LaunchJob& from, JobView* view) {
  DTRUN_INIT(view->job);
  view->from = &from;
  for (const LaunchJob::Host& host : from.hosts) {
    dtrun_job_host out;
    DTRUN_INIT(out);
    out.name = host.name.c_str();
    out.first_rank = host.first_rank;
    out.local_size = host.local_size;
    out.cores = host.cores;
    view->hosts.push_back(out);
  }
  for (const std::string& argument : from.argv) view->argv.push_back(argument.c_str());
  dtrun_job& job = view->job;
  job.name = from.name.c_str();
  job.argv = view->argv.data();
  job.argc = view->argv.size();
  job.cwd = from.cwd.c_str();
  job.hosts = view->hosts.data();
  job.host_count = view->hosts.size();
  job.world_size = from.world_size;
  job.master_addr = from.master_addr.c_str();
  job.master_port = from.master_port.c_str();
  job.inherited = &Inherited;
  job.run_dir = from.run_dir.c_str();
  job.generation = from.generation.c_str();
  job.program = from.program.c_str();
  job.bind = from.bind.c_str();
}

}  // namespace

Result<LaunchPlan> AskPlan(const Plugin& launcher, const dtrun_options& options, const LaunchJob& job,
                           const SendPart& send) {
  if (launcher.launcher().plan == nullptr) {
    return Error::Of(DTRUN_UNSUPPORTED, "launcher '{}' cannot plan processes; choose another launcher.name",
                     TypedForm(launcher.file().name));
  }
  JobView view{};
  Fill(job, &view);
  Collector collector{{}, &job, {}, send};
  dtrun_plan_sink sink;
  DTRUN_INIT(sink);
  sink.context = &collector;
  sink.process = &OnProcess;
  sink.note = &OnNote;

  const std::string who = fmt::format("launcher '{}'", TypedForm(launcher.file().name));
  PluginError error;
  dtrun_instance* instance = nullptr;
  dtrun_status status = sdk::InitPlugin(launcher.table(), &launcher.host(), &options, &instance, &error);
  if (status != DTRUN_OK) return Explained(status, error, who);
  status = launcher.launcher().plan(instance, &view.job, &sink, &error);
  launcher.table().shutdown(instance);
  if (!collector.sent) return collector.sent.error();
  if (collector.out_of_memory) throw std::bad_alloc();  // whatever the plugin returned
  if (status != DTRUN_OK && collector.wrong.empty()) return Explained(status, error, who);
  if (collector.wrong.empty()) return std::move(collector.plan);
  return Error::Of(DTRUN_INTERNAL, "{} planned an impossible process: {}; report it to the plugin's author",
                   who, collector.wrong);
}

}  // namespace dtrun::plugin
