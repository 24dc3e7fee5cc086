#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>

#include "core/base/json.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/environments/outer.h"
#include "core/plan/command.h"
#include "core/plan/hosts.h"
#include "core/spec/backend_choice.h"
#include "core/spec/lookup.h"
#include "tools/dtrun/job_flags.h"
#include "tools/dtrun/options_page.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/templates.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

struct ListArguments {
  std::string prefix;
  bool json = false;
  bool markdown = false;
};

// Explaining an option requires no job, hence no command.
launch::Preparation LoadWithoutCommand(ConfigArguments arguments) {
  arguments.base.push_back({"job.command", std::vector<std::string>{"true"}, {}});
  return Load(arguments);
}

// Checks the program as a run would; other hosts check it themselves.
Status CheckProgram(const spec::JobSpec& spec) {
  std::error_code failure;
  return plan::CheckCommand(spec, launch::RankEnvironment(), std::filesystem::current_path(failure).string());
}

// What can only be known after querying hosts and backends, in a run or by doctor.
std::string NotTried(const spec::JobSpec& spec, bool elsewhere, const std::string& file) {
  if (elsewhere) return "; its hosts are known only where that platform starts dtrun";
  if (plan::HasCluster(spec)) return "; its hosts were not checked: dtrun doctor --config " + file;
  const options::Schema rows = spec.schema();
  const bool asked = std::ranges::any_of(rows, [&](const options::Spec& row) {
    return row.key.starts_with("backend.") && spec.Get(row.key).origin.kind != DTRUN_ORIGIN_DEFAULT;
  });
  if (!asked) return {};
  const spec::BackendChoice choice = spec::BackendChoiceOf(spec);
  if (choice.automatic || choice.names == std::vector<std::string>{"none"}) return {};
  return fmt::format("; backend {} was not tested here: dtrun doctor --config {}",
                     fmt::join(choice.names, " or "), file);
}

int Check(ConfigArguments arguments) {
  arguments.elsewhere = true;
  auto preparation = LoadOrExplain(arguments);
  if (!preparation) return kUserError;
  const spec::JobSpec& spec = preparation->spec();
  const bool cluster = plan::HasCluster(spec);
  const bool elsewhere = !cluster && !spec.cluster.hosts.has() && spec.cluster.from.has();
  Status checked;
  if (!elsewhere) checked = preparation->Check();
  if (checked && !cluster && !elsewhere) checked = CheckProgram(spec);
  if (!checked) return Complain(checked.error());
  const std::string file = arguments.file.string();
  for (const preflight::Check& unknown : preparation->UnknownBackends())
    PrintMessage("dtrun: warning: {}; {}\n", unknown.what, unknown.fix);
  const std::string& platform = spec.hosts_from.platform;
  PrintOutput("{}: ok{}{}\n", file,
              platform.empty() ? "" : fmt::format("; the hosts are those of {}", platform),
              NotTried(spec, elsewhere, file));
  return 0;
}

// The options of every plugin that loads.
std::vector<OptionTable> PluginTables(const ConfigArguments& arguments) {
  std::vector<OptionTable> tables;
  const auto folders = plugin::SearchPath(arguments.plugin_dirs, {});
  for (const plugin::File& found : plugin::FindAll(folders)) {
    const auto file = plugin::Find(found.kind, found.name, folders);
    if (!file || file->kind == plugin::Kind::kDevice) continue;  // its options are its defaults
    const auto probe = plugin::Probe::Start(*file);
    if (!probe || (*probe)->description().options.empty()) continue;
    const std::string_view kind = plugin::KindText(found.kind);
    std::string note =
        kind == "backend"
            ? fmt::format("With `backend.name = \"{0}\"`; the table `[backend.{0}]` is the same.", found.name)
            : fmt::format("With `launcher.name = \"{}\"`.", found.name);
    tables.push_back(
        {fmt::format("{} {}", kind, found.name), std::move(note), (*probe)->description().options});
  }
  return tables;
}

constexpr std::string_view kBackendOptions = "backend.options.";

// The plugin's name: "nccl" for "backend nccl".
std::string NameOf(const OptionTable& table) { return table.title.substr(table.title.find(' ') + 1); }

// "backend.nccl.interface" for "backend.options.interface" in the table "backend nccl".
std::string WholeKey(const OptionTable& table, const std::string& key) {
  if (!key.starts_with(kBackendOptions)) return key;
  return fmt::format("backend.{}.{}", NameOf(table), key.substr(kBackendOptions.size()));
}

// dtrun's equivalents for variables of NCCL, Gloo, UCX, MPI, torch or OpenMP, for `dtrun config explain
// NCCL_SOCKET_IFNAME`.
struct ForeignVariable {
  std::string_view variable, option;
  std::string_view note = {};  // an additional clause
};

constexpr std::string_view kDtrunSets = "dtrun sets it for every rank";
constexpr ForeignVariable kForeignVariables[] = {
    {"NCCL_SOCKET_IFNAME", "network.interface", "ranks see it with that interface"},
    {"GLOO_SOCKET_IFNAME", "network.interface", "ranks see it with that interface"},
    {"TP_SOCKET_IFNAME", "network.interface", "ranks see it with that interface"},
    {"HOROVOD_GLOO_IFACE", "network.interface"},
    {"OMPI_MCA_btl_tcp_if_include", "network.interface"},
    {"OMPI_MCA_oob_tcp_if_include", "network.interface"},
    {"PRTE_MCA_prte_if_include", "network.interface"},
    {"FI_TCP_IFACE", "network.interface"},
    {"MASTER_ADDR", "cluster.hosts", "dtrun sets it for every rank: the first host"},
    {"MASTER_PORT", "job.master_port", kDtrunSets},
    {"WORLD_SIZE", "job.ranks", kDtrunSets},
    {"RANK", "job.ranks", kDtrunSets},
    {"LOCAL_RANK", "job.processes_per_host", kDtrunSets},
    {"LOCAL_WORLD_SIZE", "job.processes_per_host", kDtrunSets},
    {"NPROC_PER_NODE", "job.processes_per_host"},
    {"PET_NPROC_PER_NODE", "job.processes_per_host"},
    {"NNODES", "cluster.host_count"},
    {"PET_NNODES", "cluster.host_count"},
    {"NODE_RANK", "cluster.host_index"},
    {"PET_NODE_RANK", "cluster.host_index"},
    {"PET_MASTER_ADDR", "cluster.root"},
    {"PET_MAX_RESTARTS", "restart.max"},
    {"CUDA_VISIBLE_DEVICES", "job.gpu_visibility", "\"own\" makes a list for each rank"},
    {"HIP_VISIBLE_DEVICES", "job.gpu_visibility", "\"own\" makes a list for each rank"},
    {"ROCR_VISIBLE_DEVICES", "job.gpu_visibility", "\"own\" makes a list for each rank"},
    {"OMP_NUM_THREADS", "", "if it is unset, ranks see the cores of a host divided by its ranks"},
    {"PYTHONUNBUFFERED", "", "dtrun sets it to 1 for ranks, if it is unset"},
    {"PYTHONFAULTHANDLER", "", "dtrun sets it to 1 for ranks, if it is unset"},
};

const ForeignVariable* FindForeign(std::string_view variable) {
  const auto found = std::ranges::find(kForeignVariables, variable, &ForeignVariable::variable);
  return found == std::end(kForeignVariables) ? nullptr : &*found;
}

// Whether `word` looks like a variable and not like an option: NCCL_DEBUG, OMPI_MCA_btl_tcp_if_include.
bool NamesVariable(std::string_view word) {
  if (FindForeign(word) != nullptr) return true;
  return word.find('_') != word.npos && !word.empty() && word[0] >= 'A' && word[0] <= 'Z' &&
         std::ranges::all_of(word, [](char c) { return IsLetterOrDigit(c) || c == '_'; });
}

// The equivalent core option; empty: none.
std::string OptionInPlaceOf(std::string_view variable) {
  const ForeignVariable* const known = FindForeign(variable);
  return known == nullptr ? "" : std::string(known->option);
}

// A paragraph about it. `plugins`: plugin options, which may be equivalent to a variable.
std::string VariableText(const std::string& variable, const std::vector<OptionTable>& plugins) {
  const ForeignVariable* const known = FindForeign(variable);
  std::string out = variable + ": an environment variable, not an option";
  if (known != nullptr && !known->note.empty()) out += fmt::format("; {}", known->note);
  out += '\n';
  const auto append = std::back_inserter(out);
  if (known != nullptr && !known->option.empty())
    fmt::format_to(append, "  {:<13} {}, explained below\n", "option", known->option);
  for (const OptionTable& table : plugins) {
    for (const options::Spec& spec : table.options) {
      if (spec.env_alias == variable)
        fmt::format_to(append, "  {:<13} {}: {}\n", table.title, WholeKey(table, spec.key), spec.doc);
    }
  }
  const bool withheld = environments::MatchesAny(variable, environments::Withheld());
  if (withheld || (known != nullptr && known->note.starts_with(kDtrunSets))) {
    fmt::format_to(append, "  {:<13} ranks do not get your value: dtrun {} it\n", "as it is",
                   withheld && known == nullptr ? "withholds" : "sets");
  } else {
    fmt::format_to(append, "  {:<13} --set job.env.{}=VALUE, or export it before dtrun\n", "as it is",
                   variable);
  }
  return out;
}

// backend.options.KEY for backend.NAME.KEY of the chosen backend, else `key`.
std::string KeyOfChosen(const spec::JobSpec& spec, const std::string& key) {
  const std::vector<std::string> names = spec::BackendChoiceOf(spec).names;
  const std::string table = names.size() == 1 ? fmt::format("backend.{}.", names[0]) : "";
  if (table.empty() || !key.starts_with(table)) return key;
  std::string option = std::string(kBackendOptions) + key.substr(table.size());
  return spec.Find(option) == nullptr ? key : option;
}

// The options of plugins that `key` names: backend.NAME.KEY, backend.options.KEY, launcher.options.KEY, or
// backend.NAME for all. `prefix`: those that begin with `key`. Empty: none.
std::string OfPlugins(const ConfigArguments& arguments, const std::string& key, bool prefix) {
  std::string out;
  if (!key.starts_with("backend.") && !key.starts_with("launcher.")) return out;
  for (const OptionTable& table : PluginTables(arguments)) {
    const std::string name = NameOf(table);
    std::string found;
    for (options::Spec option : table.options) {
      const auto named = [&](std::string_view one) { return prefix ? one.starts_with(key) : one == key; };
      const std::string own = WholeKey(table, option.key);
      if (named(own) || key == "backend." + name) {
        option.key = own;
      } else if (!named(option.key)) {
        continue;
      }
      found += OptionText(option);
    }
    if (!found.empty()) out += fmt::format("{} (dtrun plugins describe {}):\n{}", table.title, name, found);
  }
  return out;
}

int ExplainKey(const ConfigArguments& arguments, const std::string& key) {
  const launch::Preparation preparation = Load(arguments);
  if (NamesVariable(key) && preparation.spec().Find(key) == nullptr) {
    std::string told = VariableText(key, PluginTables(arguments));
    const std::string option = OptionInPlaceOf(key);
    if (auto more = option.empty() ? Result<std::string>("") : spec::Explain(preparation.spec(), option))
      told += (option.empty() ? "" : "\n") + *more;
    WriteForReading(told);
    return 0;
  }
  auto text = spec::Explain(preparation.spec(), KeyOfChosen(preparation.spec(), key));
  if (!text) {
    if (const std::string of_plugins = OfPlugins(arguments, key, false); !of_plugins.empty()) {
      WriteForReading(of_plugins);
      return 0;
    }
    return Complain(text.error());
  }
  WriteForReading(*text);
  if (preparation.problems().empty()) return 0;
  const launch::Preparation whole = LoadWithoutCommand(arguments);
  return whole.problems().empty() ? 0 : PrintProblems(whole.problems());
}

int List(const ConfigArguments& arguments, const ListArguments& own) {
  if (own.markdown) {
    std::vector<OptionTable> tables = CoreTables();
    for (OptionTable& table : PluginTables(arguments)) tables.push_back(std::move(table));
    WriteOutput(OptionsPage(tables));
    return 0;
  }
  const launch::Preparation preparation = LoadWithoutCommand(arguments);
  if (!preparation.problems().empty())
    return PrintProblems(preparation.problems());  // the defaults would hide them
  const spec::JobSpec& spec = preparation.spec();
  if (own.json) {
    Json out = Json::array();
    for (const options::Spec& row : spec.schema()) {
      if (row.key.starts_with(own.prefix)) out.push_back(ToJson(row, spec.Get(row.key)));
    }
    WriteOutput(JsonDocument(1, {{"options", out}}));
    return 0;
  }
  const std::string text = ListOptions(spec, own.prefix, ::isatty(STDOUT_FILENO) != 1);
  if (text.empty()) {
    if (const std::string of_plugins = OfPlugins(arguments, own.prefix, true); !of_plugins.empty()) {
      WriteForReading(of_plugins);
      return 0;
    }
    PrintMessage("dtrun: no option begins with '{}'; {}\n", own.prefix,
                 spec::UnknownHint(spec.schema(), own.prefix, true, ""));
    return kUserError;
  }
  WriteTable(text);
  if (own.prefix.empty()) {
    WriteTable(
        "\n'dtrun config explain KEY' explains one of them, 'dtrun plugins describe NAME' those of another "
        "plugin.\n");
  }
  return 0;
}

}  // namespace

void AddConfig(CLI::App& app, ConfigArguments* job, Verbs* to) {
  CLI::App* config =
      app.add_subcommand("config", "Check a config, list all options, explain one, or write a new config");
  config->require_subcommand(1);

  CLI::App* check = config->add_subcommand("check", "Validate a config; report every problem");
  check->add_option("FILE", job->file, "A config file, such as job.toml")->type_name("")->required();
  AddOverrides(check, job);
  to->push_back({check, [job] { return Check(*job); }});

  const auto key = std::make_shared<std::string>();
  CLI::App* explain = config->add_subcommand("explain", "Meaning, value and origin of an option");
  explain->add_option("KEY", *key, "An option such as backend.name, or a table such as job")
      ->type_name("")
      ->required();
  AddJobFlags(explain, job);
  to->push_back({explain, [job, key] { return ExplainKey(*job, *key); }});

  const auto listed = std::make_shared<ListArguments>();
  CLI::App* list = config->add_subcommand("list", "Every option, with its value");
  list->add_option("PREFIX", listed->prefix, "Only options that begin with it, such as job or restart.")
      ->type_name("");
  list->add_flag("--json", listed->json, "Machine-readable");
  list->add_flag("--markdown", listed->markdown, "The page of all options, of every plugin too");
  AddJobFlags(list, job);
  to->push_back({list, [job, listed] { return List(*job, *listed); }});

  const auto made = std::make_shared<InitArguments>();
  CLI::App* init = config->add_subcommand("init", "Write a new config, with comments, to change");
  init->add_option("FILE", made->file, "Where to write it; - for standard output (default: job.toml)")
      ->type_name("");
  init->add_option("--template", made->name, "Kind of job (default: basic); --list shows all templates")
      ->type_name("NAME");
  init->add_flag("--list", made->list, "List the templates");
  init->add_flag("--force", made->force, "Replace a file that is there");
  to->push_back({init, [made] { return InitConfig(*made); }});
}

}  // namespace dtrun::cli
