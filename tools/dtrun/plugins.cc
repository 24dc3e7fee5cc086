// The verbs below `dtrun plugins`, and two of them: `list` and `describe`.
#include "tools/dtrun/plugins.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>

#include "core/base/json.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/plan/plan.h"
#include "core/plugin/search_path.h"
#include "core/preflight/gpu_access.h"
#include "tools/dtrun/options_page.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

// One plugin file, as probed.
struct Row {
  plugin::File file;
  std::string version = "-";
  std::string abi = "-";
  std::string state = "ok";
  std::string summary;
  std::string unusable;  // why it cannot be used here, such as a missing library; "": it can
  std::optional<options::Spec> wraps = {};  // the option that names the backend which it wraps
};

std::optional<options::Spec> WrapsBy(const plugin::Description& description) {
  const auto found = std::ranges::find_if(description.options, &options::Spec::names_backend);
  return found == description.options.end() ? std::nullopt : std::optional(*found);
}

std::vector<plugin::Folder> FoldersOf(const ConfigArguments& arguments) {
  return plugin::SearchPath(arguments.plugin_dirs, {});
}

std::vector<std::string> NamesOf(plugin::Kind kind, const std::vector<plugin::Folder>& folders) {
  std::vector<std::string> names;
  for (const plugin::File& file : plugin::FindAll(folders)) {
    if (file.kind == kind) names.push_back(ShownName(file));
  }
  return names;
}

// The options and variables in a fact "by TOPIC", options with their full key.
std::string FactText(const std::string& key, const std::string& value,
                     const std::vector<options::Spec>& options) {
  if (!key.starts_with(plan::kByFact)) return fmt::format("{}: {}", key, value);
  std::string deciding;
  for (const std::string_view word : Split(value, ' ')) {
    if (word.empty()) continue;
    const auto option =
        std::ranges::find(options, "backend.options." + std::string(word), &options::Spec::key);
    deciding +=
        fmt::format("{}{}", deciding.empty() ? "" : ", ", option == options.end() ? word : option->key);
  }
  return fmt::format("{} is decided by: {}", key.substr(std::string_view(plan::kByFact).size()), deciding);
}

// The existing names, for an error about an unknown backend.
std::string Existing(plugin::Kind kind, const std::vector<plugin::Folder>& folders) {
  const std::vector<std::string> names = NamesOf(kind, folders);
  return fmt::format("\n  {} plugins that exist: {}", plugin::KindText(kind),
                     names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

constexpr plugin::Kind kOtherKinds[] = {plugin::Kind::kLauncher, plugin::Kind::kDevice};

// What the backend would use here with these options, or why it cannot tell.
Result<plugin::LaunchInfo> LaunchWith(const Result<spec::JobSpec>& options, plugin::Probe& probe) {
  if (!options) return options.error();
  return probe.Launch(options->backend_options.front().Snapshot(), 1, 1);
}

Row RunPreflight(const ConfigArguments& arguments, const plugin::File& found,
                 const std::vector<plugin::Folder>& folders) {
  Row row{found, "-", "-", "ok", "", ""};
  auto file = plugin::Find(found.kind, found.name, folders);  // including the permission checks
  if (!file) {
    row.state = file.error().text;
    return row;
  }
  row.file = *file;
  auto probe = plugin::Probe::Start(*file);
  if (!probe) {
    row.state = probe.error().text;
    return row;
  }
  const plugin::Description& description = (*probe)->description();
  row.version = description.version;
  row.abi = description.abi;
  row.summary = description.summary;
  row.wraps = WrapsBy(description);
  const auto found_here = FoundHere(arguments, *file, **probe);
  row.unusable = found_here ? plugin::Unusable(*found_here) : found_here.error().text;
  return row;
}

std::string TableOf(const std::vector<Row>& rows) {
  std::string out;
  const auto append = std::back_inserter(out);
  const std::string under(5, ' ');
  fmt::format_to(append, "{:<9} {:<14} {:<9} {:<5} {}\n", "KIND", "NAME", "VERSION", "ABI",
                 "WHAT IT IS, AND WHERE");
  for (const Row& row : rows) {
    fmt::format_to(append, "{:<9} {:<14} {:<9} {:<5} {}\n", plugin::KindText(row.file.kind),
                   ShownName(row.file), row.version, row.abi, row.state == "ok" ? row.summary : row.state);
    fmt::format_to(append, "{}{} ({})\n", under, row.file.path.string(), row.file.origin);
    if (!row.unusable.empty())
      fmt::format_to(append, "{}not usable here: {}\n", under,
                     preflight::ListedReason(row.file.name, row.unusable));
    if (row.wraps) {
      fmt::format_to(append, "{}wraps the backend that {} names{}{}\n", under, row.wraps->key,
                     row.wraps->default_text ? ", by default " : "", row.wraps->default_text.value_or(""));
    }
    for (const auto& path : row.file.shadowed) fmt::format_to(append, "{}shadows {}\n", under, path.string());
    for (const std::string& warning : row.file.warnings)
      fmt::format_to(append, "{}warning: {}\n", under, warning);
  }
  return out;
}

}  // namespace

std::string PluginFileOf(const std::string& word, const std::vector<std::string>& plugin_dirs) {
  std::error_code none;
  const bool is_file = std::filesystem::exists(word, none) && !std::filesystem::is_directory(word, none);
  if (is_file || !plugin::IsName(word)) return word;
  const std::vector<plugin::File> files = plugin::FindAll(plugin::SearchPath(plugin_dirs, {}));
  const auto found = std::ranges::find_if(
      files, [&](const plugin::File& file) { return plugin::FileForm(file.name) == plugin::FileForm(word); });
  return found == files.end() ? word : found->path.string();
}

std::string ShownName(const plugin::File& file) {
  std::string name = file.name;
  if (file.kind == plugin::Kind::kLauncher) std::ranges::replace(name, '_', '-');
  return name;
}

std::string_view WithoutPlugin(std::string_view name) {
  if (name == "none") return "no plugin: dtrun only starts the ranks, which communicate by themselves";
  if (name == "auto")
    return "no plugin: the first of nccl, ucx and gloo that all hosts can use; 'dtrun doctor' shows which";
  return {};
}

Result<plugin::LaunchInfo> FoundHere(const ConfigArguments& arguments, const plugin::File& file,
                                     plugin::Probe& probe) {
  if (file.kind == plugin::Kind::kBackend)
    return LaunchWith(launch::DefaultsOf(file, arguments.plugin_dirs), probe);
  if (file.kind == plugin::Kind::kDevice) return probe.Devices();
  return plugin::LaunchInfo{};
}

Json IdentityOf(const plugin::File& file, const plugin::Description& description) {
  return {{"kind", plugin::KindText(file.kind)},
          {"name", ShownName(file)},
          {"version", description.version},
          {"vendor", description.vendor},
          {"license", description.license},
          {"summary", description.summary},
          {"abi", description.abi},
          {"path", file.path.string()}};
}

int ListPlugins(const ConfigArguments& arguments, bool json, bool names_only) {
  const auto folders = FoldersOf(arguments);
  const auto files = plugin::FindAll(folders);
  if (names_only) {
    for (const plugin::File& file : files) PrintOutput("{}\n", ShownName(file));
    return 0;
  }
  std::vector<Row> rows;
  for (const plugin::File& file : files) rows.push_back(RunPreflight(arguments, file, folders));
  if (json) {
    Json out = Json::array();
    for (const Row& row : rows) {
      Json shadowed = Json::array();
      for (const auto& path : row.file.shadowed) shadowed.push_back(path.string());
      out.push_back({{"kind", plugin::KindText(row.file.kind)},
                     {"name", ShownName(row.file)},
                     {"version", row.version},
                     {"abi", row.abi},
                     {"state", row.state},
                     {"summary", row.summary},
                     {"path", row.file.path.string()},
                     {"origin", row.file.origin},
                     {"shadowed", shadowed},
                     {"warnings", row.file.warnings}});
      if (!row.unusable.empty()) out.back()["unusable"] = row.unusable;
      if (row.wraps) out.back()["wraps_by"] = row.wraps->key;
    }
    WriteOutput(JsonDocument(1, {{"plugins", out}}));
    return 0;
  }
  WriteTable(TableOf(rows));
  if (rows.empty()) PrintMessage("dtrun: no plugins found\n");
  for (const std::string& missing : plugin::MissingFolders(folders)) PrintMessage("dtrun: {}\n", missing);
  PrintOutput("\nlooked in:\n");
  for (const plugin::Folder& folder : folders)
    PrintOutput("  {} ({})\n", folder.path.string(), folder.origin);
  return 0;
}

int DescribePlugin(const ConfigArguments& arguments, const std::string& name, const std::string& kind,
                   bool json) {
  if (const std::string_view special = WithoutPlugin(name);
      !special.empty() && (kind.empty() || kind == "backend")) {
    if (json)
      WriteOutput(JsonDocument(1, {{"kind", "backend"}, {"name", name}, {"summary", special}}));
    else
      PrintOutput("backend {}: {}\n", name, special);
    return 0;
  }
  const auto folders = FoldersOf(arguments);
  auto file = plugin::Find(plugin::KindOf(kind).value_or(plugin::Kind::kBackend), name, folders);
  for (const plugin::Kind other : kOtherKinds) {
    if (file || !kind.empty()) break;
    if (auto found = plugin::Find(other, name, folders); found.ok()) file = std::move(found);
  }
  if (!file && kind.empty()) {
    Error error = file.error();
    const bool lists_backends = error.code == DTRUN_NOT_FOUND;
    if (!lists_backends) error.text += Existing(plugin::Kind::kBackend, folders);
    for (const plugin::Kind other : kOtherKinds) error.text += Existing(other, folders);
    return Complain(error);
  }
  if (!file) return Complain(file.error());
  auto probe = plugin::Probe::Start(*file);
  if (!probe) return Complain(probe.error());
  plugin::Description it = (*probe)->description();
  // A launcher that plans nothing has no options of launcher.name.
  if (it.members.size() > 0 && std::ranges::find(it.members, "plan") == it.members.end()) {
    for (options::Spec& spec : it.options)
      spec.key = "launcher." + file->name + spec.key.substr(spec.key.rfind('.'));
  }
  const bool backend = file->kind == plugin::Kind::kBackend;
  const Result<spec::JobSpec> set =
      backend ? launch::DefaultsOf(*file, arguments.plugin_dirs, arguments.sets) : spec::JobSpec();
  const Result<plugin::LaunchInfo> info =
      backend ? LaunchWith(set, **probe) : FoundHere(arguments, *file, **probe);
  const std::optional<options::Spec> wraps = WrapsBy(it);
  const std::string stack =
      wraps && set ? options::StackText(file->name, set->backend_options.front().Snapshot()) : "";
  if (json) {
    Json out = IdentityOf(*file, it);
    if (!it.members.empty()) out["members"] = it.members;
    out["options"] = Json::array();
    for (const options::Spec& spec : it.options) out["options"].push_back(ToJson(spec));
    if (wraps) out["wraps_by"] = wraps->key;
    if (!stack.empty()) {
      out["stack"] = stack;
      out["options_below"] = Json::array();
      for (const options::Spec& spec : set->below.schema) out["options_below"].push_back(ToJson(spec));
    }
    out["here"] = Json::object();
    if (info.ok()) {
      for (const auto& [key, value] : info->facts) out["here"][key] = value;
    } else {
      out["here"]["error"] = info.error().text;
    }
    WriteOutput(JsonDocument(1, out));
    return 0;
  }
  std::string text = fmt::format("{} {} {}: {}\n  by {}, {}, ABI {}\n  {} ({})\n",
                                 plugin::KindText(file->kind), ShownName(*file), it.version, it.summary,
                                 it.vendor, it.license, it.abi, file->path.string(), file->origin);
  if (!it.members.empty()) text += fmt::format("  members: {}\n", fmt::join(it.members, ", "));
  if (wraps)
    text +=
        fmt::format("  wraps the backend that {} names{}{}\n", wraps->key, stack.empty() ? "" : ": ", stack);
  if (info.ok()) {
    for (const auto& [key, value] : info->facts) text += "  " + FactText(key, value, it.options) + '\n';
  } else {
    text += fmt::format("  not usable here: {}\n", info.error().text);
  }
  text += fmt::format("\noptions{}\n", it.options.empty() ? ": none" : "");
  if (file->kind == plugin::Kind::kBackend && !it.options.empty()) {
    text += fmt::format(
        "  backend.options.KEY where backend.name is \"{0}\"; backend.{0}.KEY there, and where it names "
        "several\n",
        file->name);
  }
  if (it.members.size() > 1 && it.members.front() == "plan" && !it.options.empty()) {
    text += fmt::format(
        "  launcher.options.KEY where launcher.name is \"{0}\"; launcher.{0}.KEY where it finds or starts "
        "hosts\n",
        file->name);
  }
  for (const options::Spec& spec : it.options) text += OptionText(spec);
  if (!stack.empty()) {
    text += fmt::format("\noptions below{}\n", set->below.schema.empty() ? ": none" : "");
    for (const options::Spec& spec : set->below.schema) text += OptionText(spec);
  } else if (wraps) {
    text += fmt::format("\noptions below: --set {}=NAME shows them\n", wraps->key);
  }
  WriteForReading(text);
  return 0;
}

void AddPlugins(CLI::App& app, ConfigArguments* job, Verbs* to) {
  struct Arguments {
    std::string name, kind;          // for describe
    std::vector<std::string> files;  // for check
    bool json = false;
    bool names_only = false;
    NewPluginArguments create;
  };
  const auto own = std::make_shared<Arguments>();
  CLI::App* plugins =
      app.add_subcommand("plugins", "List, describe, check and verify plugins, or start a new one");
  plugins->require_subcommand(0, 1);
  CLI::App* list = plugins->add_subcommand("list", "Every plugin found, and whether it loads");
  list->add_flag("--json", own->json, "Machine-readable");
  list->add_flag("--names", own->names_only, "Names only; loads nothing");
  AddOverrides(list, job);
  CLI::App* describe =
      plugins->add_subcommand("describe", "What a plugin is, what it would use here, its options");
  describe->add_option("NAME", own->name, "A name such as gloo, or the absolute path of a plugin file")
      ->type_name("")
      ->required();
  describe->add_option("--kind", own->kind, "Where plugins of several kinds share the name")
      ->type_name("KIND")
      ->check(CLI::IsMember({"backend", "launcher", "device"}));
  describe->add_flag("--json", own->json, "Machine-readable");
  AddOverrides(describe, job);
  to->push_back({describe, [job, own] { return DescribePlugin(*job, own->name, own->kind, own->json); }});
  CLI::App* check = plugins->add_subcommand("check", "What dtrun says of plugin files; starts no job");
  check->add_option("PLUGIN", own->files, "Files, such as build/libdtrun_backend_NAME.so, or installed names")
      ->type_name("FILE")
      ->required();
  check->add_flag("--json", own->json, "Machine-readable");
  check->footer("Exit code: 0 if every file loads and breaks no rule that its file shows, 1 if not.");
  to->push_back({check, [job, own] { return CheckPlugins(*job, own->files, own->json); }});
  CLI::App* verify =
      plugins->add_subcommand("verify", "Try a plugin against every rule of the ABI, by dtrun-conformance");
  verify
      ->add_option("PLUGIN", own->files,
                   "The file, or an installed name; arguments of dtrun-conformance follow it")
      ->type_name("FILE")
      ->required()
      ->expected(1);
  verify->footer("dtrun plugins verify FILE --help lists the arguments. The program comes with the SDK.");
  CLI::App* create =
      plugins->add_subcommand("new", "Write a plugin that builds and passes verify, to start from");
  create->add_option("NAME", own->create.name, "Up to 32 of a-z, 0-9, - and _")->type_name("")->required();
  create->add_option("--language", own->create.language, "One of c, c++, rust")
      ->type_name("LANGUAGE")
      ->capture_default_str();
  create->add_flag("--launcher", own->create.launcher, "A launcher; else a backend");
  create->add_option("--output", own->create.output, "The folder to make (default: NAME)")->type_name("DIR");
  to->push_back({create, [own] { return NewPlugin(own->create); }});
  // Last: it was typed also where one of the others was.
  to->push_back({plugins, [job, own] { return ListPlugins(*job, own->json, own->names_only); }});
}

}  // namespace dtrun::cli
