#include "core/plugin/ask_launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
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

constexpr int kHighestPort = 65535;

// The state of a sink's callbacks. Exceptions must not cross the plugin.
struct Collector {
  std::string wrong;  // the first invalid answer

  // Returns the error to the plugin as well, which should pass it on.
  dtrun_status Refuse(const std::string& what, dtrun_error* err) {
    if (wrong.empty()) wrong = what;
    return Error{DTRUN_INVALID_ARGUMENT, what}.CopyTo(err);
  }
};

template <class Answer>
struct Answers : Collector {
  std::vector<Answer> answers;
  std::size_t asked = 0;  // hosts
};

// What a plugin is asked, and the variables that it may look up. `query` is the first member.
template <class Query>
struct Asked {
  Query query;
  const hosts::Environment* environment;

  static const char* Variable(const Query* query, const char* name) noexcept {
    const auto& variables = *reinterpret_cast<const Asked*>(query)->environment;
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  }
  explicit Asked(const hosts::Environment& variables) : environment(&variables) {
    DTRUN_INIT(query);
    if constexpr (requires { query.inherited; }) {
      query.inherited = &Variable;
    } else {
      query.variable = &Variable;
    }
  }
};

std::vector<const char*> PointersTo(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

// Calls init, `call` and shutdown. `did`: what a plugin with an invalid answer has done.
Status CallMember(const Plugin& launcher, const dtrun_options& options, const Collector& collector,
                  const char* did, const std::function<dtrun_status(dtrun_instance*, dtrun_error*)>& call) {
  const std::string who = fmt::format("launcher '{}'", TypedForm(launcher.file().name));
  PluginError error;
  dtrun_instance* instance = nullptr;
  dtrun_status status = sdk::InitPlugin(launcher.table(), &launcher.host(), &options, &instance, &error);
  if (status != DTRUN_OK) return Explained(status, error, who);
  status = call(instance, &error);
  launcher.table().shutdown(instance);
  if (!collector.wrong.empty()) {
    return Error::Of(DTRUN_INTERNAL, "{} {}: {}; report it to the plugin's author", who, did,
                     collector.wrong);
  }
  if (status != DTRUN_OK) return Explained(status, error, who);
  return {};
}

constexpr char kAnswered[] = "gave an impossible answer";

Error LacksMember(const Plugin& launcher, const char* what) {
  return Error::Of(DTRUN_UNSUPPORTED, "launcher '{}' {}", TypedForm(launcher.file().name), what);
}

// Adds the plugin's hosts; returns the error, or nothing.
std::string AddHosts(const dtrun_allocation& from, hosts::Allocation* out) {
  if (from.host_count == 0) return {};
  if (from.host_count > hosts::kMaxHosts)
    return fmt::format("it has {} hosts, more than {}", from.host_count, hosts::kMaxHosts);
  const GivenArray hosts(from.hosts);
  if (!hosts.valid()) return fmt::format("its first host says that it has {} bytes", hosts.stride());
  for (std::uint64_t i = 0; i < from.host_count; ++i) {
    const dtrun_allocated_host host = hosts[i];
    if (const std::string wrong = UnknownFlags(host.flags, 0); !wrong.empty())
      return fmt::format("host {}: {}", i, wrong);
    const std::string name = TextOf(host.name);
    if (const Status valid = hosts::CheckHostName(name); !valid)
      return fmt::format("host {}: {}", i, Printable(valid.error().text));
    if (host.slots < 0 || host.slots > hosts::kMaxSlots)
      return fmt::format("host '{}' has {} slots", name, host.slots);
    out->hosts.push_back({name, {}});
    if (host.slots > 0) out->hosts.back().slots = host.slots;
  }
  std::vector<std::string> names;
  for (const hosts::HostSlots& host : out->hosts) names.push_back(Lowercase(host.name));
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  return twice == names.end() ? "" : fmt::format("it has the host '{}' twice", *twice);
}

std::string AddHostCount(const dtrun_allocation& from, hosts::Allocation* out) {
  const int all = out->hosts.empty() ? from.max_hosts : static_cast<int>(out->hosts.size());
  out->count = {from.min_hosts == 0 ? all : from.min_hosts, all};
  if (all < 0 || all > hosts::kMaxHosts || from.min_hosts < 0 || out->count.min > all)
    return fmt::format("it has from {} to {} hosts", from.min_hosts, all);
  if ((from.flags & DTRUN_ALLOCATION_OWN_INDEX) == 0) return {};
  out->own_index = from.own_index;
  if (from.own_index < 0 || from.own_index >= (all == 0 ? hosts::kMaxHosts : all))
    return fmt::format("this is host {} of {}", from.own_index, all);
  return {};
}

std::string ReadAllocation(const dtrun_allocation& from, hosts::Allocation* out) {
  constexpr std::uint32_t kKnown =
      DTRUN_ALLOCATION_EVERYWHERE | DTRUN_ALLOCATION_OWN_INDEX | DTRUN_ALLOCATION_PORT_TAKEN;
  for (const auto& wrong : {UnknownFlags(from.flags, kKnown), AddHosts(from, out), AddHostCount(from, out)}) {
    if (!wrong.empty()) return wrong;
  }
  out->everywhere = (from.flags & DTRUN_ALLOCATION_EVERYWHERE) != 0;
  out->rank_port_taken = (from.flags & DTRUN_ALLOCATION_PORT_TAKEN) != 0;
  out->root_address = TextOf(from.root_address);
  if (!out->root_address.empty() && !hosts::CheckHostName(out->root_address))
    return fmt::format("its root is at '{}', which is not a host name", Printable(out->root_address));
  if (from.rank_port < 0 || from.rank_port > kHighestPort)
    return fmt::format("rank 0 listens at port {}", from.rank_port);
  if (from.rank_port != 0) out->rank_port = from.rank_port;
  out->processes_per_host = Printable(TextOf(from.processes_per_host));
  out->evidence = Printable(TextOf(from.evidence));
  out->sharing = Printable(TextOf(from.sharing));
  for (std::uint64_t i = 0; i < from.implies_count; ++i)
    out->implies.push_back(Printable(TextOf(from.implies[i])));
  return {};
}

dtrun_status OnAllocation(void* context, const dtrun_allocation* from, dtrun_error* err) noexcept {
  auto* collector = static_cast<Answers<hosts::Allocation>*>(context);
  if (!collector->answers.empty()) return collector->Refuse("it answers twice", err);
  hosts::Allocation out;
  if (const std::string wrong = TooSmall(from, "a dtrun_allocation"); !wrong.empty())
    return collector->Refuse(wrong, err);
  if (const std::string wrong = ReadAllocation(sdk::internal::ReadStruct(from), &out); !wrong.empty())
    return collector->Refuse(wrong, err);
  collector->answers.push_back(std::move(out));
  return DTRUN_OK;
}

dtrun_status OnCommand(void* context, const dtrun_connect_command* from, dtrun_error* err) noexcept {
  auto* collector = static_cast<Answers<hosts::StartCommand>*>(context);
  if (const std::string wrong = TooSmall(from, "a dtrun_connect_command"); !wrong.empty())
    return collector->Refuse(wrong, err);
  const dtrun_connect_command command = sdk::internal::ReadStruct(from);
  if (const std::string wrong = UnknownFlags(command.flags, 0); !wrong.empty())
    return collector->Refuse(wrong, err);
  hosts::StartCommand out;
  for (std::uint64_t i = 0; i < command.argc; ++i) {
    if (command.argv[i] == nullptr)
      return collector->Refuse(fmt::format("argument {} of a command is null", i), err);
    out.argv.emplace_back(command.argv[i]);
  }
  if (out.argv.empty() || out.argv[0].empty()) return collector->Refuse("a command has no program", err);
  for (std::uint64_t i = 0; i < command.host_count; ++i) {
    if (command.hosts[i] >= collector->asked) {
      return collector->Refuse(fmt::format("'{}' starts host {} of {}, which are numbered from 0",
                                           Printable(out.argv[0]), command.hosts[i], collector->asked),
                               err);
    }
    out.hosts.push_back(command.hosts[i]);
  }
  if (out.hosts.empty())
    return collector->Refuse(fmt::format("'{}' starts no host", Printable(out.argv[0])), err);
  out.host_variable = TextOf(command.host_variable);
  out.trial = Printable(TextOf(command.trial));
  out.ending = TextOf(command.ending);
  collector->answers.push_back(std::move(out));
  return DTRUN_OK;
}

// Parts keep either end from holding a large plan as text, and show the parent that the child makes
// progress.
constexpr std::size_t kProcessesOfAPart = 4096;
constexpr std::size_t kMostNotes = 4096;
constexpr std::size_t kMostNoteBytes = 4096;  // of one

struct PlanCollector : Collector {
  PlanCollector(const LaunchJob& asked, const SendPart& parts) : job(asked), send(parts) {}
  LaunchPlan plan;
  const LaunchJob& job;
  const SendPart& send;
  std::shared_ptr<const ProcessVariables::Map> shared = {};  // variables of the first process
  std::size_t notes = 0;
  bool out_of_memory = false;  // in our code
  Status sent = {};
};

// The error for a variable, or empty.
std::string AddVariable(const dtrun_env_entry& entry, PlannedProcess* out) {
  const std::string name = TextOf(entry.name);
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

dtrun_status AddProcess(PlanCollector* collector, const dtrun_process* from, dtrun_error* err) {
  if (const std::string wrong = TooSmall(from, "a dtrun_process"); !wrong.empty())
    return collector->Refuse(wrong, err);
  const dtrun_process process = sdk::internal::ReadStruct(from);
  if (const std::string wrong = UnknownFlags(process.flags, 0); !wrong.empty())
    return collector->Refuse(fmt::format("rank {}: {}", process.rank, wrong), err);
  PlannedProcess out;
  out.host = process.host_index;
  out.rank = process.rank;
  out.local_rank = process.local_rank;
  out.rank_count = process.rank_count;
  if (process.argv == nullptr) {
    out.argv = collector->job.argv;
  } else {
    if (process.argc == 0)
      return collector->Refuse(fmt::format("rank {} has arguments of its own and no program", out.rank), err);
    for (std::uint64_t i = 0; i < process.argc; ++i) {
      if (process.argv[i] == nullptr)
        return collector->Refuse(fmt::format("argument {} of rank {} is null", i, out.rank), err);
      out.argv.emplace_back(process.argv[i]);
    }
  }
  const GivenArray variables(process.env);
  if (process.env_count != 0 && !variables.valid())
    return collector->Refuse(fmt::format("a variable of rank {} has {} bytes", out.rank, variables.stride()),
                             err);
  for (std::uint64_t i = 0; i < process.env_count; ++i) {
    if (const std::string wrong = AddVariable(variables[i], &out); !wrong.empty())
      return collector->Refuse(fmt::format("variable {} of rank {} is {}", i, out.rank, wrong), err);
  }
  out.cwd = process.cwd == nullptr ? collector->job.cwd : process.cwd;
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
  auto* collector = static_cast<PlanCollector*>(context);
  try {
    return AddProcess(collector, from, err);
  } catch (const std::bad_alloc&) {
    collector->out_of_memory = true;
    collector->plan = {};  // frees memory for the error
    return Error{DTRUN_OUT_OF_MEMORY, "out of memory"}.CopyTo(err);
  }
}

dtrun_status OnNote(void* context, dtrun_string text, dtrun_error* err) noexcept {
  auto* collector = static_cast<PlanCollector*>(context);
  if (text.size > kMostNoteBytes) {
    return collector->Refuse(fmt::format("a note has {} bytes, of at most {}", text.size, kMostNoteBytes),
                             err);
  }
  if (collector->notes++ == kMostNotes)
    return collector->Refuse(fmt::format("it has more than {} notes", kMostNotes), err);
  collector->plan.notes.push_back(Printable(View(text)));
  return DTRUN_OK;
}

}  // namespace

Result<hosts::Allocation> AskHosts(const Plugin& launcher, const dtrun_options& options,
                                   const hosts::Environment& environment) {
  if (launcher.launcher().find_hosts == nullptr) return LacksMember(launcher, "has no 'find_hosts'");
  Answers<hosts::Allocation> collector;
  dtrun_hosts_sink sink;
  DTRUN_INIT(sink);
  sink.context = &collector;
  sink.allocation = &OnAllocation;
  const Asked<dtrun_hosts_query> asked(environment);
  const Status called =
      CallMember(launcher, options, collector, kAnswered, [&](dtrun_instance* self, dtrun_error* err) {
        const dtrun_status status = launcher.launcher().find_hosts(self, &asked.query, &sink, err);
        if (status == DTRUN_OK && collector.answers.empty() && collector.wrong.empty())
          collector.wrong = "it found hosts and names none";
        return status;
      });
  if (!called) return called.error();
  return std::move(collector.answers.front());
}

Result<std::vector<hosts::StartCommand>> AskConnect(const Plugin& launcher, const dtrun_options& options,
                                                    const ConnectRequest& request) {
  if (launcher.launcher().connect == nullptr) return LacksMember(launcher, "has no 'connect'");
  Answers<hosts::StartCommand> collector;
  collector.asked = request.hosts.size();
  dtrun_connect_sink sink;
  DTRUN_INIT(sink);
  sink.context = &collector;
  sink.command = &OnCommand;
  const std::vector<const char*> names = PointersTo(request.hosts), argv = PointersTo(request.argv);
  Asked<dtrun_connect_query> asked(request.environment);
  asked.query.hosts = names.data();
  asked.query.host_count = names.size();
  asked.query.argv = argv.data();
  asked.query.argc = argv.size();
  const Status called =
      CallMember(launcher, options, collector, kAnswered, [&](dtrun_instance* self, dtrun_error* err) {
        const dtrun_status status = launcher.launcher().connect(self, &asked.query, &sink, err);
        if (status != DTRUN_OK || !collector.wrong.empty()) return status;
        std::vector<int> started(request.hosts.size());
        for (const hosts::StartCommand& command : collector.answers) {
          for (const std::size_t host : command.hosts) ++started[host];
        }
        for (std::size_t i = 0; i < started.size(); ++i) {
          if (started[i] == 1) continue;
          collector.wrong = fmt::format("host '{}' is started {}", request.hosts[i],
                                        started[i] == 0 ? "by no command" : "more than once");
          break;
        }
        return status;
      });
  if (!called) return called.error();
  return std::move(collector.answers);
}

Result<LaunchPlan> AskPlan(const Plugin& launcher, const dtrun_options& options, const LaunchJob& job,
                           const SendPart& send) {
  if (launcher.launcher().plan == nullptr)
    return LacksMember(launcher, "cannot plan processes; choose another launcher.name");
  std::vector<dtrun_job_host> hosts;
  for (const LaunchJob::Host& host : job.hosts) {
    dtrun_job_host& out = hosts.emplace_back();
    DTRUN_INIT(out);
    out.name = host.name.c_str();
    out.first_rank = host.first_rank;
    out.local_size = host.local_size;
    out.cores = host.cores;
  }
  const std::vector<const char*> argv = PointersTo(job.argv);
  Asked<dtrun_job> asked(job.inherited);
  dtrun_job& query = asked.query;
  query.name = job.name.c_str();
  query.argv = argv.data();
  query.argc = argv.size();
  query.cwd = job.cwd.c_str();
  query.hosts = hosts.data();
  query.host_count = hosts.size();
  query.world_size = job.world_size;
  query.master_addr = job.master_addr.c_str();
  query.master_port = job.master_port.c_str();
  query.run_dir = job.run_dir.c_str();
  query.generation = job.generation.c_str();
  query.program = job.program.c_str();
  query.bind = job.bind.c_str();
  PlanCollector collector(job, send);
  dtrun_plan_sink sink;
  DTRUN_INIT(sink);
  sink.context = &collector;
  sink.process = &OnProcess;
  sink.note = &OnNote;
  const Status called = CallMember(launcher, options, collector, "planned an impossible process",
                                   [&](dtrun_instance* self, dtrun_error* err) {
                                     return launcher.launcher().plan(self, &query, &sink, err);
                                   });
  if (!collector.sent) return collector.sent.error();
  if (collector.out_of_memory) throw std::bad_alloc();  // whatever the plugin returned
  if (!called) return called.error();
  return std::move(collector.plan);
}

}  // namespace dtrun::plugin
