#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <tuple>

#include "core/base/text.h"
#include "tools/dtrun/torchrun/grammar.h"

namespace dtrun::torchrun {
namespace {

using Setter = decltype(Option::set);

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

Status CheckInterval(const std::string& text, Arguments*) {
  return ParseFloat(text) ? Status() : Bad(fmt::format("expected a number of seconds; found '{}'", text));
}

template <class Member>
Setter Filters(Member member) {
  return [member](const std::string& text, Arguments* to) {
    to->*member = ParseFilters(text);
    return Status();
  };
}

Setter Flag(bool Arguments::*member) {
  return [member](const std::string& text, Arguments* to) {
    to->*member = !text.empty();
    return Status();
  };
}

std::vector<Option> CommonOptions() {
  return {
      {"help", "", "show this text", {}, 'h', false},
      {"nnodes", "N|MIN:MAX", "number of nodes (1)", SetNodes},
      {"nproc_per_node", "N|cpu|gpu|auto", "ranks on each node (1)", Text(&Arguments::nproc_per_node)},
      {"rdzv_backend", "NAME", "static or c10d (static)", Text(&Arguments::rdzv_backend)},
      {"rdzv_endpoint", "HOST[:PORT]", "where the nodes meet", Text(&Arguments::rdzv_endpoint)},
      {"rdzv_id", "ID", "name of the job, the same on all nodes (none)", Text(&Arguments::rdzv_id)},
      {"rdzv_conf", "KEY=VALUE,...", "further settings, such as join_timeout=600",
       Converted(ParseRendezvousConfig, &Arguments::rdzv_conf)},
      {"standalone", "", "this node alone, on a free port", Flag(&Arguments::standalone)},
      {"max_restarts", "N", "restarts of all ranks after a failure (0)",
       Integer(&Arguments::max_restarts, 0, INT_MAX)},
      {"monitor_interval", "SECONDS", "accepted; dtrun sees a rank end at once", CheckInterval},
      {"start_method", "spawn|fork|forkserver", "accepted; ranks are programs of their own",
       Text(&Arguments::start_method)},
      {"event_log_handler", "NAME", "null or console; the run directory has the record",
       Text(&Arguments::event_log_handler)},
      {"role", "NAME", "role of the ranks (default)", Text(&Arguments::role)},
      {"module", "", "the script is a Python module", Flag(&Arguments::module), 'm'},
      {"no_python", "", "the script is a program", Flag(&Arguments::no_python)},
      {"run_path", "", "run the script with runpy.run_path", Flag(&Arguments::run_path)},
      {"log_dir", "DIR", "folder for logs and error files (a new one in TMPDIR)", Text(&Arguments::log_dir)},
      {"redirects", "STREAMS", "to files instead of the console: 0-3, or RANK:0-3,...",
       Converted(ParseStreams, &Arguments::redirects), 'r'},
      {"tee", "STREAMS", "to files and the console", Converted(ParseStreams, &Arguments::tee), 't'},
      {"local_ranks_filter", "RANK,...", "local ranks that are shown on the console",
       Converted(ParseRanks, &Arguments::local_ranks_filter)},
      {"duplicate_stdout_filters", "TEXT,...", "lines of tee'd stdout to copy to a file",
       Filters(&Arguments::duplicate_stdout_filters)},
      {"duplicate_stderr_filters", "TEXT,...", "lines of tee'd stderr to copy to a file",
       Filters(&Arguments::duplicate_stderr_filters)},
      {"log_line_prefix_template", "TEXT",
       "before tee'd lines ([${role_name}${local_rank}]:); also ${rank}, ${hostname}",
       Text(&Arguments::log_line_prefix_template), '\0', false},
      {"node_rank", "N", "number of this node, for static (0)", Integer(&Arguments::node_rank, 0, INT_MAX)},
      {"master_addr", "HOST", "address of node 0, for static (127.0.0.1)", Text(&Arguments::master_addr)},
      {"master_port", "PORT", "port on node 0, for static (any free one, or 29500)",
       Integer(&Arguments::master_port, 0, 65535)},
      {"local_addr", "HOST", "address that this node publishes", Text(&Arguments::local_addr)},
      {"logs_specs", "NAME", "only default; others are Python plug-ins", Text(&Arguments::logs_specs), '\0',
       false},
      {"numa_binding", "MODE", "node, socket, exclusive or core-complex: job.bind",
       Text(&Arguments::numa_binding), '\0', false},
      {"signals_to_handle", "NAME,...", "signals that end the job", Text(&Arguments::signals_to_handle)},
      {"shutdown_timeout", "SECONDS", "between the first signal and SIGKILL (30)",
       Integer(&Arguments::shutdown_timeout, 0, 3600)},
      {"virtual_local_rank", "", "LOCAL_RANK is 0, each rank sees its own GPU only",
       Flag(&Arguments::virtual_local_rank)},
  };
}

std::string Forms(const Option& option) {
  std::string forms = option.letter == '\0' ? "    " : fmt::format("-{}, ", option.letter);
  forms += option.Spelling();
  return option.flag() ? forms : fmt::format("{} {}", forms, option.metavar);
}

}  // namespace

std::string Arguments::PlaceOf(std::string_view name) const {
  return Given(name) ? OriginOf(name).place : Option{.name = name}.Spelling();
}

std::string Option::Spelling() const {
  std::string spelling = "--" + std::string(name);
  std::ranges::replace(spelling, '_', '-');
  return spelling;
}

std::string Option::Environment() const {
  std::string variable = "PET_";
  for (const char c : name) variable += ToUpper(c);
  return variable;
}

const std::vector<Option>& Options(Program program) {
  static const std::vector<Option> kTorchrun = CommonOptions();
  static const std::vector<Option> kLaunch = [] {
    std::vector<Option> options = CommonOptions();
    options.push_back({"use_env", "", "do not add --local-rank=N after the script", Flag(&Arguments::use_env),
                       '\0', false});
    return options;
  }();
  return program == Program::kTorchrun ? kTorchrun : kLaunch;
}

std::string_view ProgramName(Program program) {
  return program == Program::kTorchrun ? "dtrun torchrun" : "dtrun torch.distributed.launch";
}

std::string Usage(Program program) {
  return fmt::format("usage: {} [OPTION ...] training_script [ARGUMENT ...]\n", ProgramName(program));
}

std::string Help(Program program) {
  std::string text = Usage(program);
  text += fmt::format("\nTakes the command line of {}.\n\n", program == Program::kTorchrun
                                                                 ? "torchrun (torch.distributed.run)"
                                                                 : "torch.distributed.launch");
  for (const Option& option : Options(program)) {
    text += fmt::format("  {:<42} {}\n", Forms(option), option.help);
  }
  return text +
         "\nLong options may be written with _ for -, and shortened if unambiguous. Variables give\n"
         "defaults: PET_NPROC_PER_NODE and so on. What follows the script is passed to it.\n"
         "dtrun's own options are set by DTRUN_CONFIG_<KEY>; `dtrun plan torchrun ...` previews a run.\n"
         "Exit code: 0 when all ranks succeed; 1 when one fails or a signal ends the job; 2 when the\n"
         "command line is wrong, or this machine cannot provide what it asks for.\n";
}

}  // namespace dtrun::torchrun
