#include "tools/dtrun/torchrun/assign.h"

#include <fmt/format.h>

#include <climits>
#include <cstdlib>
#include <functional>
#include <map>
#include <tuple>

#include "tools/dtrun/torchrun/grammar.h"

namespace dtrun::torchrun {
namespace {

using Setter = std::function<Status(const std::string& text, Arguments* to)>;

template <class Member>
Setter Text(Member member) {
  return [member](const std::string& text, Arguments* to) {
    to->*member = text;
    return Status();
  };
}

template <class Member>
Setter Integer(Member member, int least, int most) {
  return [=](const std::string& text, Arguments* to) -> Status {
    const auto number = ParseInt(text);
    if (!number) return Bad(fmt::format("expected an integer; found '{}'", text));
    if (*number < least || *number > most) {
      const std::string range =
          most == INT_MAX ? fmt::format("at least {}", least) : fmt::format("{} to {}", least, most);
      return Bad(fmt::format("expected {}; found {}", range, *number));
    }
    to->*member = *number;
    return {};
  };
}

template <class Parser, class Member>
Setter Converted(Parser parse, Member member) {
  return [=](const std::string& text, Arguments* to) -> Status {
    auto value = parse(text);
    if (!value) return value.error();
    to->*member = *std::move(value);
    return {};
  };
}

Status SetNodes(const std::string& text, Arguments* to) {
  const auto nodes = ParseNodes(text);
  if (!nodes) return nodes.error();
  std::tie(to->min_nodes, to->max_nodes) = *nodes;
  return {};
}

Status SetInterval(const std::string& text, Arguments* to) {
  const auto seconds = ParseFloat(text);
  if (!seconds) return Bad(fmt::format("expected a number of seconds; found '{}'", text));
  to->monitor_interval = *seconds;
  return {};
}

template <class Member>
Setter Filters(Member member) {
  return [member](const std::string& text, Arguments* to) {
    to->*member = ParseFilters(text);
    return Status();
  };
}

const std::map<std::string_view, Setter>& Setters() {
  static const std::map<std::string_view, Setter> kSetters = {
      {"nnodes", SetNodes},
      {"nproc_per_node", Text(&Arguments::nproc_per_node)},
      {"rdzv_backend", Text(&Arguments::rdzv_backend)},
      {"rdzv_endpoint", Text(&Arguments::rdzv_endpoint)},
      {"rdzv_id", Text(&Arguments::rdzv_id)},
      {"rdzv_conf", Converted(ParseRendezvousConfig, &Arguments::rdzv_conf)},
      {"max_restarts", Integer(&Arguments::max_restarts, 0, INT_MAX)},
      {"monitor_interval", SetInterval},
      {"start_method", Text(&Arguments::start_method)},
      {"event_log_handler", Text(&Arguments::event_log_handler)},
      {"role", Text(&Arguments::role)},
      {"log_dir", Text(&Arguments::log_dir)},
      {"redirects", Converted(ParseStreams, &Arguments::redirects)},
      {"tee", Converted(ParseStreams, &Arguments::tee)},
      {"local_ranks_filter", Converted(ParseRanks, &Arguments::local_ranks_filter)},
      {"duplicate_stdout_filters", Filters(&Arguments::duplicate_stdout_filters)},
      {"duplicate_stderr_filters", Filters(&Arguments::duplicate_stderr_filters)},
      {"log_line_prefix_template", Text(&Arguments::log_line_prefix_template)},
      {"node_rank", Integer(&Arguments::node_rank, 0, INT_MAX)},
      {"master_addr", Text(&Arguments::master_addr)},
      {"master_port", Integer(&Arguments::master_port, 0, 65535)},
      {"local_addr", Text(&Arguments::local_addr)},
      {"logs_specs", Text(&Arguments::logs_specs)},
      {"numa_binding", Text(&Arguments::numa_binding)},
      {"signals_to_handle", Text(&Arguments::signals_to_handle)},
      {"shutdown_timeout", Integer(&Arguments::shutdown_timeout, 0, 3600)},
  };
  return kSetters;
}

const std::map<std::string_view, bool Arguments::*>& Flags() {
  static const std::map<std::string_view, bool Arguments::*> kFlags = {
      {"standalone", &Arguments::standalone}, {"module", &Arguments::module},
      {"no_python", &Arguments::no_python},   {"run_path", &Arguments::run_path},
      {"use_env", &Arguments::use_env},       {"virtual_local_rank", &Arguments::virtual_local_rank},
  };
  return kFlags;
}

}  // namespace

Status Assign(std::string_view name, const std::string& text, bool choices, Arguments* to) {
  const auto setter = Setters().find(name);
  if (setter == Setters().end()) std::abort();
  if (choices && name == "start_method" && text != "spawn" && text != "fork" && text != "forkserver") {
    return Bad(fmt::format("expected spawn, fork or forkserver; found '{}'", text));
  }
  return setter->second(text, to);
}

void SetFlag(std::string_view name, bool on, Arguments* to) {
  const auto flag = Flags().find(name);
  if (flag == Flags().end()) std::abort();
  to->*(flag->second) = on;
}

}  // namespace dtrun::torchrun
