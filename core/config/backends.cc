// The loader's part for backend.name: one name or several, and the tables [backend.NAME] with the options
// of each. Behind the loader there is one backend with backend.options, wherever those were written.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/suggest.h"
#include "core/config/loader.h"
#include "core/config/lookup.h"

namespace dtrun::config {
namespace {

constexpr char kName[] = "backend.name";

// What "auto" stands for: the fastest that a host may have first. mpi is not among them: whether it can run
// shows only when ranks start.
const std::vector<std::string>& Preferred() {
  static const std::vector<std::string> names{"nccl", "ucx", "gloo"};
  return names;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::vector<std::string> BackendNames(const Settings& settings) {
  const options::Data& data = settings.Get(kName).data;
  if (const auto* list = std::get_if<std::vector<std::string>>(&data)) return *list;
  const std::string& name = settings.Text(kName);
  if (name == "auto") return Preferred();
  return {name};
}

std::string Loader::ChosenBackend() const {
  return request_.backend.empty() ? BackendNames(settings_).front() : request_.backend;
}

bool Loader::KnowsBackend(const std::string& name) const {
  return Contains(request_.backends, name) || Contains(BackendNames(settings_), name);
}

void Loader::CheckBackendTables() {
  if (failed_.contains(kName)) return;
  for (const Member* table : backend_tables_) {
    if (KnowsBackend(table->key)) continue;
    if (const auto nearest = Nearest(table->key, request_.backends)) {
      problems_.Add(InFile(table->at), fmt::format("unknown table 'backend.{}'", table->key),
                    fmt::format("did you mean [backend.{}]?", *nearest));
    } else {
      FailUnknown({}, "backend." + table->key, InFile(table->at), true, false);
    }
  }
}

void Loader::FindBackendTables(Pass* pass) {
  for (const Member* table : backend_tables_) {
    if (table->key == pass->plugin) pass->own_table = &table->value;
  }
  if (pass->table == nullptr || pass->table->members.empty() || BackendNames(settings_).size() == 1) return;
  problems_.Add(InFile(pass->table->members.front().at),
                "backend.options belongs to no one backend when backend.name gives several",
                fmt::format("write the options of {} into [backend.{}], and so for the others", pass->plugin,
                            pass->plugin));
  pass->table = nullptr;
}

// "backend.gloo.interface" as it is called behind the loader; empty when another backend was chosen;
// nullopt when `key` is no such key.
std::optional<std::string> Loader::BackendKey(const std::string& key) const {
  constexpr std::string_view kTable = "backend.";
  if (!key.starts_with(kTable) || failed_.contains(kName)) return std::nullopt;
  const std::size_t dot = key.find('.', kTable.size());
  if (dot == key.npos) return std::nullopt;
  const std::string name = key.substr(kTable.size(), dot - kTable.size());
  if (name == "options" || !KnowsBackend(name)) return std::nullopt;
  return name == ChosenBackend() ? "backend.options" + key.substr(dot) : "";
}

}  // namespace dtrun::config
