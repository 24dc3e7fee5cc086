#include "core/plugin/ask_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/plugin/given_struct.h"
#include "core/plugin/search_path.h"
#include "core/plugin/services.h"
#include "dtrun/plugin/failure.hpp"

namespace dtrun::plugin {
namespace {

constexpr int kHighestPort = 65535;

// The state of a sink: the answers, and the first invalid one.
template <class Answer>
struct Answers {
  std::vector<Answer> answers;
  std::size_t asked = 0;  // hosts
  std::string wrong;

  // Returns the error to the plugin as well, which should pass it on.
  dtrun_status Refuse(const std::string& what, dtrun_error* err) {
    if (wrong.empty()) wrong = what;
    return Error{DTRUN_INVALID_ARGUMENT, what}.CopyTo(err);
  }
};

std::string OrEmpty(const char* text) { return text == nullptr ? "" : text; }

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
    const std::string name = OrEmpty(host.name);
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
  out->root_address = OrEmpty(from.root_address);
  if (!out->root_address.empty() && !hosts::CheckHostName(out->root_address))
    return fmt::format("its root is at '{}', which is not a host name", Printable(out->root_address));
  if (from.rank_port < 0 || from.rank_port > kHighestPort)
    return fmt::format("rank 0 listens at port {}", from.rank_port);
  if (from.rank_port != 0) out->rank_port = from.rank_port;
  out->processes_per_host = Printable(OrEmpty(from.processes_per_host));
  out->evidence = Printable(OrEmpty(from.evidence));
  out->sharing = Printable(OrEmpty(from.sharing));
  for (std::uint64_t i = 0; i < from.implies_count; ++i)
    out->implies.push_back(Printable(OrEmpty(from.implies[i])));
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
  out.host_variable = OrEmpty(command.host_variable);
  out.trial = Printable(OrEmpty(command.trial));
  out.ending = OrEmpty(command.ending);
  collector->answers.push_back(std::move(out));
  return DTRUN_OK;
}

// The `variable` callback of both queries. `query` is the first member.
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
    query.variable = &Variable;
  }
};

// Calls init, `call` and shutdown.
Status CallMember(const Plugin& launcher, const dtrun_options& options, const std::string& wrong,
                  const std::function<dtrun_status(dtrun_instance*, dtrun_error*)>& call) {
  const std::string who = fmt::format("launcher '{}'", TypedForm(launcher.file().name));
  PluginError error;
  dtrun_instance* instance = nullptr;
  dtrun_status status = sdk::InitPlugin(launcher.table(), &launcher.host(), &options, &instance, &error);
  if (status != DTRUN_OK) return Explained(status, error, who);
  status = call(instance, &error);
  launcher.table().shutdown(instance);
  if (!wrong.empty()) {
    return Error::Of(DTRUN_INTERNAL, "{} gave an impossible answer: {}; report it to the plugin's author",
                     who, wrong);
  }
  if (status != DTRUN_OK) return Explained(status, error, who);
  return {};
}

Error LacksMember(const Plugin& launcher, const char* member) {
  return Error::Of(DTRUN_UNSUPPORTED, "launcher '{}' has no '{}'", TypedForm(launcher.file().name), member);
}

}  // namespace

Result<hosts::Allocation> AskHosts(const Plugin& launcher, const dtrun_options& options,
                                   const hosts::Environment& environment) {
  if (launcher.launcher().find_hosts == nullptr) return LacksMember(launcher, "find_hosts");
  Answers<hosts::Allocation> collector;
  dtrun_hosts_sink sink;
  DTRUN_INIT(sink);
  sink.context = &collector;
  sink.allocation = &OnAllocation;
  const Asked<dtrun_hosts_query> asked(environment);
  const Status called =
      CallMember(launcher, options, collector.wrong, [&](dtrun_instance* self, dtrun_error* err) {
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
  if (launcher.launcher().connect == nullptr) return LacksMember(launcher, "connect");
  Answers<hosts::StartCommand> collector;
  collector.asked = request.hosts.size();
  dtrun_connect_sink sink;
  DTRUN_INIT(sink);
  sink.context = &collector;
  sink.command = &OnCommand;
  std::vector<const char*> names, argv;
  for (const std::string& host : request.hosts) names.push_back(host.c_str());
  for (const std::string& word : request.argv) argv.push_back(word.c_str());
  Asked<dtrun_connect_query> asked(request.environment);
  asked.query.hosts = names.data();
  asked.query.host_count = names.size();
  asked.query.argv = argv.data();
  asked.query.argc = argv.size();
  const Status called =
      CallMember(launcher, options, collector.wrong, [&](dtrun_instance* self, dtrun_error* err) {
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

}  // namespace dtrun::plugin
