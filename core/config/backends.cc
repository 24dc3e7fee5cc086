// The loader's part for backend.name: one or several names, and the tables [backend.NAME] with their options.
// After loading there is one backend with backend.options, wherever the options were written.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/secrets.h"
#include "core/base/suggest.h"
#include "core/config/backend_choice.h"
#include "core/config/loader.h"
#include "core/config/lookup.h"

namespace dtrun::config {
namespace {

constexpr char kName[] = "backend.name";
constexpr char kPath[] = "backend.path";
constexpr std::pair<const char*, const char*> kOverCommunicator[] = {{"backend.torch", "dtrun"},
                                                                     {"python.horovod", "shim"}};

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

void Loader::CheckBackendName() {
  if (failed_.contains(kName)) return;
  const auto choice = ReadBackendChoice(settings_.Get(kName).data, request_.devices);
  const auto place_of = [&](const char* key) {
    const auto place = places_.find(key);
    return place == places_.end() ? InFile({}) : place->second;
  };
  if (!choice) {
    Fail(*settings_.Find(kName), place_of(kName), "", choice.error().text);
  } else if (choice->by_memory() && choice->names.size() > 1 && settings_.Has(kPath)) {
    Fail(*settings_.Find(kPath), place_of(kPath), "",
         "it is the file of one backend, and backend.name gives two; put their folder into plugins.path");
  }
}

// dtrun's communicator needs a backend: a default of "none", as under `dtrun torchrun`, is overridden.
void Loader::CheckCommunicator() {
  if (failed_.contains(kName) || BackendNames(settings_).front() != "none") return;
  for (const auto& [key, value] : kOverCommunicator) {
    if (settings_.Text(key) != value) continue;
    const options::Spec& name = *settings_.Find(kName);
    const options::Origin& origin = settings_.Get(kName).origin;
    if (origin.kind == DTRUN_ORIGIN_DEFAULT) {
      settings_.values_[kName] = {*ParseText(name, *name.default_text, start_folder_), {}};
      return;
    }
    const auto place = places_.find(key);
    Fail(*settings_.Find(key), place == places_.end() ? InFile({}) : place->second, "",
         fmt::format(
             "\"{}\" needs a communicator, and {} is \"none\" ({}); name a backend there, such as {}, or "
             "take {} out",
             value, kName, origin.place, *name.default_text, key));
  }
}

std::string Loader::ChosenBackend() const {
  return request_.backend.empty() ? BackendNames(settings_).front() : request_.backend;
}

// A backend that the config does not name: it joins the ranks beside a device-memory backend.
bool Loader::IsUnnamed(const std::string& name) const { return !Contains(BackendNames(settings_), name); }

// In a list dtrun skips to the next name, unless this one is a typo of an existing name.
bool Loader::MayBePassedOver(const std::string& name, const Error& why_not) const {
  const bool absent = why_not.code == DTRUN_NOT_FOUND || why_not.code == DTRUN_INVALID_ARGUMENT;
  return BackendChoiceOf(settings_).falls_back() && !(absent && IsSlip(name, request_.backends));
}

bool Loader::KnowsBackend(const std::string& name) const {
  return Contains(request_.backends, name) || Contains(HostBackends(), name) || !IsUnnamed(name);
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
  if (pass->own_name_only) pass->table = nullptr;
  if (pass->table == nullptr || pass->table->members.empty() || BackendNames(settings_).size() == 1) return;
  problems_.Add(InFile(pass->table->members.front().at),
                "backend.options belongs to no one backend when backend.name gives several",
                fmt::format("write the options of {} into [backend.{}], and so for the others", pass->plugin,
                            pass->plugin));
  pass->table = nullptr;
}

// How to write an option that only some backends of the config have; empty if that is not the problem.
std::string Loader::OfOneBackend(const Pass& pass, const std::string& key) const {
  if (!pass.shown.empty() || pass.prefix != "backend.options." || !key.starts_with(pass.prefix)) return {};
  std::string others;
  for (const std::string& name : BackendNames(settings_)) {
    if (name == pass.plugin) continue;
    others += fmt::format("{}backend.{}.{}", others.empty() ? "" : " or ", name,
                          MaskText(key.substr(pass.prefix.size())));
  }
  if (others.empty() || IsUnnamed(pass.plugin)) return {};
  return fmt::format("{} has no such option; write {} for one backend alone", pass.plugin, others);
}

// Translates "backend.gloo.interface" to the loaded key; empty if another backend was chosen; nullopt if
// `key` is not such a key.
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
