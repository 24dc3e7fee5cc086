// The loader's part for plugins: the names in backend.name and launcher.name, and the options of each plugin in
// [backend.options], [backend.NAME], [launcher.options] and [launcher.NAME].
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/spec/backend_choice.h"
#include "core/spec/loader.h"
#include "core/spec/lookup.h"

namespace dtrun::spec {
namespace {

constexpr char kBackendKind[] = "backend";
constexpr char kLauncherKind[] = "launcher";

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

void Loader::CheckBackendName() {
  if (Failed(spec_.backend.name)) return;
  const auto choice = ReadBackendChoice(spec_.backend.name.value.data, request_->devices);
  if (!choice) {
    Fail(spec_.backend.name, choice.error().text);
  } else if (choice->by_memory() && choice->names.size() > 1 && spec_.backend.path.has()) {
    Fail(spec_.backend.path,
         "it is the file of one backend, and backend.name gives two; put their folder into plugins.path");
  }
}

// dtrun's communicator needs a backend: a default of "none", as under `dtrun torchrun`, is overridden.
void Loader::CheckCommunicator() {
  NamesField& name = spec_.backend.name;
  if (Failed(name) || BackendNames(spec_).front() != "none") return;
  for (const auto& [user, value] :
       {std::pair{&spec_.backend.torch, "dtrun"}, std::pair{&spec_.python.horovod, "shim"}}) {
    if (!user->is(value)) continue;
    const std::string usual = *name.row().default_text;
    if (!name.given()) {
      name.value = {usual, {}};
      return;
    }
    Fail(*user, fmt::format("\"{}\" needs a communicator, and {} is \"none\" ({}); name a backend there, "
                            "such as {}, or remove {}",
                            value, name.key(), name.place(), usual, user->key()));
  }
}

// Whether the config names this plugin to start the ranks or to serve them. Another backend may join the ranks beside
// a device-memory backend; another launcher may be asked for hosts.
bool Loader::IsNamed(const std::string& kind, const std::string& name) const {
  return kind == kBackendKind ? Contains(BackendNames(spec_), name) : *spec_.launcher.name == name;
}

// In a list dtrun skips to the next name, unless this one is a typo of an existing name.
bool Loader::MayBePassedOver(const std::string& name, const Error& why_not) const {
  const bool absent = why_not.code == DTRUN_NOT_FOUND || why_not.code == DTRUN_INVALID_ARGUMENT;
  return BackendChoiceOf(spec_).falls_back() && !(absent && IsSlip(name, request_->backends));
}

bool Loader::Knows(const std::string& kind, const std::string& name) const {
  if (IsNamed(kind, name)) return true;
  if (kind == kBackendKind) return Contains(request_->backends, name) || Contains(HostBackends(), name);
  return Contains(request_->launcher_names, name) || spec_.cluster.from.is(name) || spec_.cluster.connect.is(name);
}

void Loader::CheckTables() {
  for (const auto& [kind, table] : tables_) {
    if (kind == kBackendKind && Failed(spec_.backend.name)) continue;
    if (Knows(kind, table->key)) continue;
    const std::string key = kind + "." + table->key;
    const auto& existing = kind == kBackendKind ? request_->backends : request_->launcher_names;
    if (const auto nearest = Nearest(table->key, existing)) {
      problems_.Add(InFile(table->at), fmt::format("unknown table '{}'", key),
                    fmt::format("did you mean [{}.{}]?", kind, *nearest));
    } else {
      FailUnknown({}, key, InFile(table->at), true, false);
    }
  }
}

void Loader::FindTables(Pass* pass) {
  for (const Member& top : root_->members) {
    if (top.key != pass->kind) continue;
    for (const Member& member : top.value.members) {
      if (member.key == "options" && member.value.kind == Node::Kind::kTable) pass->table = &member.value;
    }
  }
  for (const auto& [kind, table] : tables_) {
    if (kind == pass->kind && table->key == pass->plugin) pass->own_table = &table->value;
  }
  pass->own_name_only = !IsNamed(pass->kind, pass->plugin);
  if (pass->own_name_only) pass->table = nullptr;
  if (pass->table == nullptr || pass->table->members.empty() || pass->kind != kBackendKind ||
      BackendNames(spec_).size() == 1)
    return;
  problems_.Add(InFile(pass->table->members.front().at),
                "backend.options is ambiguous when backend.name gives several backends",
                fmt::format("write the options of {} into [backend.{}], and so for the others", pass->plugin,
                            pass->plugin));
  pass->table = nullptr;
}

// How to write an option that only some backends of the config have; empty if that is not the problem.
std::string Loader::OfOneBackend(const Pass& pass, const std::string& key) const {
  if (!pass.shown.empty() || pass.kind != kBackendKind || !key.starts_with(pass.prefix)) return {};
  std::string others;
  for (const std::string& name : BackendNames(spec_)) {
    if (name == pass.plugin) continue;
    others += fmt::format("{}backend.{}.{}", others.empty() ? "" : " or ", name,
                          MaskText(key.substr(pass.prefix.size())));
  }
  if (others.empty() || pass.own_name_only) return {};
  return fmt::format("{} has no such option; write {} for one backend alone", pass.plugin, others);
}

// "backend" and "gloo" for "backend.gloo.interface"; nullopt if `key` is not an option of a known plugin.
std::optional<std::pair<std::string, std::string>> Loader::PluginOf(const std::string& key) const {
  const std::size_t first = key.find('.');
  const std::size_t second = first == key.npos ? key.npos : key.find('.', first + 1);
  if (second == key.npos) return std::nullopt;
  const std::string kind = key.substr(0, first);
  const std::string name = key.substr(first + 1, second - first - 1);
  if ((kind != kBackendKind && kind != kLauncherKind) || name == "options") return std::nullopt;
  if ((kind == kBackendKind && Failed(spec_.backend.name)) || !Knows(kind, name)) return std::nullopt;
  return std::pair(kind, name);
}

PluginRead Loader::Read(const std::string& kind, const std::string& name, const options::Schema& schema) const {
  PluginRead read;
  Problems problems;
  read.options = Read(kind, name, schema, true, &problems);
  read.problems = std::move(problems).Take();
  return read;
}

PluginOptions Loader::Read(const std::string& kind, const std::string& name, const options::Schema& schema,
                           bool finish, Problems* problems) const {
  Loader own(*this);
  own.problems_ = {};
  own.plugin_ = {kind, name, schema, {}};
  own.schema_.insert(own.schema_.end(), schema.begin(), schema.end());
  for (const options::Spec& row : schema) {
    options::Value& value = own.plugin_.values[row.key];
    if (!row.default_text) continue;
    auto data = ParseText(row, *row.default_text, spec_.folder);
    if (data) {
      value.data = *std::move(data);
    } else {
      own.Fail(row, InFile({}), "",
               fmt::format("its default is unusable, a defect of the {}: {}", row.reader, data.error().text));
    }
  }
  Pass pass{kind, name, kind + ".options."};
  own.FindTables(&pass);
  own.RunPass(pass);
  // A launcher without options in the config may be queried even if a required option is unset.
  if (finish && (kind == kBackendKind || !pass.own_name_only || pass.own_table != nullptr)) own.Finish(schema);
  problems->Append(std::move(own.problems_));
  return std::move(own.plugin_);
}

void Loader::ReadPlugin(const PluginSchema& schema_of, const std::string& kind, const std::string& name) {
  const bool backend = kind == kBackendKind;
  const auto schema = schema_of(kind, name, spec_);
  if (!schema) {
    if (backend && MayBePassedOver(name, schema.error())) return;
    problems_.AddLines(PlaceOf(places_.contains(kind + ".path") ? kind + ".path" : kind + ".name"),
                       schema.error().text);
    return;
  }
  PluginOptions options = Read(kind, name, *schema, true, &problems_);
  if (backend) {
    spec_.backend_options.push_back(std::move(options));
  } else {
    spec_.launcher_options = std::move(options);
    schema_.insert(schema_.end(), schema->begin(), schema->end());
  }
}

// The options of plugins that the job does not use are checked too, so that no misspelt one waits for its day.
void Loader::CheckOthers(const PluginSchema& schema_of) {
  std::set<std::pair<std::string, std::string>> others;
  for (const auto& [kind, table] : tables_) {
    if (Knows(kind, table->key)) others.emplace(kind, table->key);
  }
  for (const std::string& text : request_->sets) {
    if (const auto plugin = PluginOf(text.substr(0, text.find('=')))) others.insert(*plugin);
  }
  for (const auto& [kind, name] : others) {
    if (IsNamed(kind, name)) continue;
    if (const auto schema = schema_of(kind, name, spec_)) Read(kind, name, *schema, false, &problems_);
  }
}

}  // namespace dtrun::spec
