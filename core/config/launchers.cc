// The loader's part for the tables [launcher.NAME]: options of a launcher that is queried for hosts or
// commands, beside the one that launcher.name names. After loading there is one launcher with
// launcher.options.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/suggest.h"
#include "core/config/loader.h"

namespace dtrun::config {
namespace {

constexpr char kLauncherName[] = "launcher.name";

}  // namespace

std::string Loader::ChosenLauncher() const {
  return request_.launcher.empty() ? settings_.Text(kLauncherName) : request_.launcher;
}

bool Loader::KnowsLauncher(const std::string& name) const {
  if (std::ranges::find(request_.launcher_names, name) != request_.launcher_names.end()) return true;
  return std::ranges::any_of(
      std::initializer_list<const char*>{kLauncherName, "cluster.from", "cluster.connect"},
      [&](const char* key) { return settings_.Has(key) && settings_.Text(key) == name; });
}

void Loader::CheckLauncherTables() {
  for (const Member* table : launcher_tables_) {
    if (KnowsLauncher(table->key)) continue;
    if (const auto nearest = Nearest(table->key, request_.launcher_names)) {
      problems_.Add(InFile(table->at), fmt::format("unknown table 'launcher.{}'", table->key),
                    fmt::format("did you mean [launcher.{}]?", *nearest));
    } else {
      FailUnknown({}, "launcher." + table->key, InFile(table->at), true, false);
    }
  }
}

void Loader::FindLauncherTables(Pass* pass) {
  for (const Member* table : launcher_tables_) {
    if (table->key == pass->plugin) pass->own_table = &table->value;
  }
  pass->own_name_only = pass->plugin != settings_.Text(kLauncherName);
  if (pass->own_name_only) pass->table = nullptr;
}

// Translates "launcher.slurm.partition" to the loaded key; empty if another launcher is read; nullopt if
// `key` is not such a key.
std::optional<std::string> Loader::LauncherKey(const std::string& key) const {
  constexpr std::string_view kTable = "launcher.";
  if (!key.starts_with(kTable)) return std::nullopt;
  const std::size_t dot = key.find('.', kTable.size());
  if (dot == key.npos) return std::nullopt;
  const std::string name = key.substr(kTable.size(), dot - kTable.size());
  if (name == "options" || !KnowsLauncher(name)) return std::nullopt;
  return name == ChosenLauncher() ? "launcher.options" + key.substr(dot) : "";
}

}  // namespace dtrun::config
