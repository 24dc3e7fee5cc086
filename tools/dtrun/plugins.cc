// `dtrun plugins list` and `dtrun plugins describe`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

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
};

std::vector<plugin::Folder> FoldersOf(const ConfigArguments& arguments) {
  return plugin::SearchPath(arguments.plugin_dirs, {});
}

// As in launcher.name: launchers are named with hyphens, their files with underscores.
std::string ShownName(const plugin::File& file) {
  std::string name = file.name;
  if (file.kind == plugin::Kind::kLauncher) std::ranges::replace(name, '_', '-');
  return name;
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

// Values of backend.name that are not plugins; empty: it is a plugin.
std::string_view WithoutPlugin(std::string_view name) {
  if (name == "none") return "no plugin: dtrun only starts the ranks, which communicate by themselves";
  if (name == "auto")
    return "no plugin: the first of nccl, ucx and gloo that all hosts can use; 'dtrun doctor' shows which";
  return {};
}

// What the backend would use here with default options, or why it cannot tell.
Result<plugin::LaunchInfo> DefaultLaunch(const ConfigArguments& arguments, const plugin::File& file,
                                         plugin::Probe& probe) {
  const auto defaults = launch::DefaultsOf(file, arguments.plugin_dirs);
  if (!defaults) return defaults.error();
  return probe.Launch(defaults->backend_options.front().Snapshot(), 1, 1);
}

// What the plugin found on this host: a backend's library, a device plugin's devices.
Result<plugin::LaunchInfo> FoundHere(const ConfigArguments& arguments, const plugin::File& file,
                                     plugin::Probe& probe) {
  if (file.kind == plugin::Kind::kBackend) return DefaultLaunch(arguments, file, probe);
  if (file.kind == plugin::Kind::kDevice) return probe.Devices();
  return plugin::LaunchInfo{};
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
    for (const auto& path : row.file.shadowed) fmt::format_to(append, "{}shadows {}\n", under, path.string());
    for (const std::string& warning : row.file.warnings)
      fmt::format_to(append, "{}warning: {}\n", under, warning);
  }
  return out;
}

}  // namespace

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
    std::string text = file.error().text;
    const bool lists_backends = file.error().code == DTRUN_NOT_FOUND;
    if (!lists_backends) text += Existing(plugin::Kind::kBackend, folders);
    for (const plugin::Kind other : kOtherKinds) text += Existing(other, folders);
    PrintMessage("dtrun: {}\n", text);
    return 2;
  }
  if (!file) {
    PrintMessage("dtrun: {}\n", file.error().text);
    return 2;
  }
  auto probe = plugin::Probe::Start(*file);
  if (!probe) {
    PrintMessage("dtrun: {}\n", probe.error().text);
    return 2;
  }
  const plugin::Description& it = (*probe)->description();
  const Result<plugin::LaunchInfo> info = FoundHere(arguments, *file, **probe);
  if (json) {
    Json out = {{"kind", plugin::KindText(file->kind)},
                {"name", ShownName(*file)},
                {"version", it.version},
                {"vendor", it.vendor},
                {"license", it.license},
                {"summary", it.summary},
                {"abi", it.abi},
                {"path", file->path.string()}};
    if (!it.members.empty()) out["members"] = it.members;
    out["options"] = Json::array();
    for (const options::Spec& spec : it.options) out["options"].push_back(ToJson(spec));
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
  for (const options::Spec& spec : it.options) text += OptionText(spec);
  WriteForReading(text);
  return 0;
}

}  // namespace dtrun::cli
