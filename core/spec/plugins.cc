// The loader's part for plugins: the names in backend.name and launcher.name, and the options of each plugin
// in [backend.options], [backend.NAME], [launcher.options] and [launcher.NAME].
#include <fmt/format.h>
#include <fmt/ranges.h>

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

// "demo" of ".../libdtrun_backend_demo.so"; empty: not the file of such a plugin.
std::string NameOfFile(std::string_view path, std::string_view kind) {
  const std::string before = fmt::format("libdtrun_{}_", kind);
  constexpr std::string_view kAfter = ".so";
  path.remove_prefix(path.rfind('/') + 1);
  if (!path.starts_with(before) || !path.ends_with(kAfter)) return {};
  return std::string(path.substr(before.size(), path.size() - before.size() - kAfter.size()));
}

// Of a text or a list of names; empty: several, or one for each kind of memory.
std::string OnlyName(const options::Data& names) {
  const auto* const list = std::get_if<std::vector<std::string>>(&names);
  if (list != nullptr && list->size() != 1) return {};
  const auto* const text = list != nullptr ? &list->front() : std::get_if<std::string>(&names);
  return text == nullptr || text->find(':') != std::string::npos ? std::string() : *text;
}

// The name of the backend that the text names, or that has this file, with '_' for '-'.
std::string NameIn(std::string text) {
  if (const std::string name = NameOfFile(text, kBackendKind); !name.empty()) text = name;
  std::ranges::replace(text, '-', '_');
  return text;
}

}  // namespace

template <class Name>
void Loader::NameByFile(Name& name, const PathField& path, std::string_view kind) {
  if (builder_.Failed(name) || !path.has() || builder_.Failed(path)) return;
  std::string of_file = NameOfFile(*path, kind);
  if (name.given()) {
    const std::string given = OnlyName(name.value.data);
    if (!of_file.empty() && !given.empty() && NameIn(given) != of_file) {
      builder_.Fail(path,
                    fmt::format("it is the file of {0} '{1}', and {0}.name is \"{2}\"; name one plugin in "
                                "both, or leave {0}.name away",
                                kind, of_file, given));
    }
    return;
  }
  std::ranges::replace(of_file, '_', '-');
  if (!of_file.empty()) {
    name.value = {of_file, path.value.origin};
  } else {
    builder_.Fail(path, fmt::format("its name is not libdtrun_{0}_NAME.so; set {1} to the plugin's own name",
                                    kind, name.key()));
  }
}

void Loader::NameLauncherByFile() {
  NameByFile(builder_.spec.launcher.name, builder_.spec.launcher.path, kLauncherKind);
}

void Loader::CheckBackendName() {
  NameByFile(builder_.spec.backend.name, builder_.spec.backend.path, kBackendKind);
  if (builder_.Failed(builder_.spec.backend.name)) return;
  const auto choice = ReadBackendChoice(builder_.spec.backend.name.value.data, builder_.request->devices);
  if (!choice) {
    builder_.Fail(builder_.spec.backend.name, choice.error().text);
  } else if (choice->by_memory() && choice->names.size() > 1 && builder_.spec.backend.path.has()) {
    builder_.Fail(
        builder_.spec.backend.path,
        "it is the file of one backend, and backend.name gives two; put their folder into plugins.path");
  }
}

// dtrun's communicator needs a backend: a default of "none", as under `dtrun torchrun`, is overridden.
void Loader::CheckCommunicator() {
  NamesField& name = builder_.spec.backend.name;
  if (builder_.Failed(name) || BackendNames(builder_.spec).front() != "none") return;
  for (const auto& [user, value] :
       {std::pair{&builder_.spec.backend.torch, "dtrun"}, std::pair{&builder_.spec.python.horovod, "shim"}}) {
    if (!user->is(value)) continue;
    const std::string usual = *name.row().default_text;
    if (!name.given()) {
      name.value = {usual, {}};
      return;
    }
    builder_.Fail(*user,
                  fmt::format("\"{}\" needs a communicator, and {} is \"none\" ({}); name a backend there, "
                              "such as {}, or remove {}",
                              value, name.key(), name.place(), usual, user->key()));
  }
}

// Whether the config names this plugin to start the ranks or to serve them. Another backend may join the
// ranks beside a device-memory backend; another launcher may be asked for hosts.
bool Loader::IsNamed(const std::string& kind, const std::string& name) const {
  return kind == kBackendKind ? Contains(BackendNames(builder_.spec), name)
                              : *builder_.spec.launcher.name == name;
}

// In a list dtrun skips to the next name, unless this one is a typo of an existing name.
bool Loader::MayBePassedOver(const std::string& name, const Error& why_not) const {
  const bool absent = why_not.code == DTRUN_NOT_FOUND || why_not.code == DTRUN_INVALID_ARGUMENT;
  return BackendChoiceOf(builder_.spec).falls_back() && !(absent && IsSlip(name, builder_.request->backends));
}

bool Loader::Knows(const std::string& kind, const std::string& name) const {
  if (IsNamed(kind, name) || (kind == kBackendKind && wrapped_.contains(name))) return true;
  const Request& request = *builder_.request;
  if (builder_.spec.plugins.path.given() && request.exists && request.exists(kind, name, builder_.spec))
    return true;
  if (kind == kBackendKind) return Contains(request.backends, name) || Contains(HostBackends(), name);
  return Contains(request.launcher_names, name) || builder_.spec.cluster.from.is(name) ||
         builder_.spec.cluster.connect.is(name);
}

void Loader::CheckTables() {
  for (const auto& [kind, table] : tables_) {
    if (kind == kBackendKind && builder_.Failed(builder_.spec.backend.name)) continue;
    if (Knows(kind, table->key)) continue;
    const std::string key = kind + "." + table->key;
    const auto& existing =
        kind == kBackendKind ? builder_.request->backends : builder_.request->launcher_names;
    if (const auto nearest = Nearest(table->key, existing)) {
      builder_.problems.Add(builder_.InFile(table->at), fmt::format("unknown table '{}'", key),
                            fmt::format("did you mean [{}.{}]?", kind, *nearest));
    } else {
      FailUnknown({}, key, builder_.InFile(table->at), true, false);
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
      BackendNames(builder_.spec).size() == 1)
    return;
  builder_.problems.Add(builder_.InFile(pass->table->members.front().at),
                        "backend.options is ambiguous when backend.name gives several backends",
                        fmt::format("write the options of {} into [backend.{}], and so for the others",
                                    pass->plugin, pass->plugin));
  pass->table = nullptr;
}

// How to write an option that only some backends of the config have; empty if that is not the problem.
std::string Loader::OfOneBackend(const Pass& pass, const std::string& key) const {
  if (!pass.shown.empty() || pass.kind != kBackendKind || !key.starts_with(pass.prefix)) return {};
  std::string others;
  for (const std::string& name : BackendNames(builder_.spec)) {
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
  if ((kind == kBackendKind && builder_.Failed(builder_.spec.backend.name)) || !Knows(kind, name))
    return std::nullopt;
  return std::pair(kind, name);
}

PluginRead Loader::Read(const std::string& kind, const std::string& name,
                        const options::Schema& schema) const {
  PluginRead read;
  Problems problems;
  read.options = Read(kind, name, schema, true, &problems);
  read.problems = std::move(problems).Take();
  return read;
}

PluginOptions Loader::Read(const std::string& kind, const std::string& name, const options::Schema& schema,
                           bool finish, Problems* problems) const {
  Loader own(*this);
  own.builder_.problems = {};
  own.builder_.plugin = {kind, name, schema, {}};
  own.builder_.schema.insert(own.builder_.schema.end(), schema.begin(), schema.end());
  for (const options::Spec& row : schema) {
    options::Value& value = own.builder_.plugin.values[row.key];
    if (!row.default_text) continue;
    auto data = ParseText(row, *row.default_text, builder_.spec.folder);
    if (data) {
      value.data = *std::move(data);
    } else {
      own.builder_.Fail(
          row, builder_.InFile({}), "",
          fmt::format("its default is unusable, a defect of the {}: {}", row.reader, data.error().text));
    }
  }
  Pass pass{kind, name, kind + ".options."};
  own.FindTables(&pass);
  if (pass.own_name_only) own.builder_.own_table = fmt::format("{}.{}.", kind, name);
  own.RunPass(pass);
  // A launcher without options in the config may be queried even if a required option is unset.
  if (finish && (kind == kBackendKind || !pass.own_name_only || pass.own_table != nullptr))
    own.Finish(schema);
  problems->Append(std::move(own.builder_.problems));
  return std::move(own.builder_.plugin);
}

void Loader::Remember(const PluginOptions& options, bool below) {
  read_.emplace(options.kind, options.name);
  for (options::Spec row : options.schema) {
    const options::Value& value = options.values.at(row.key);
    row.key = options.OwnKey(row.key);
    own_rows_.push_back(row);
    if (below && builder_.spec.below.values.emplace(row.key, value).second)
      builder_.spec.below.schema.push_back(std::move(row));
  }
}

// The backends that the options of `wrapper` name, with theirs. `above`: the wrappers, this one last.
void Loader::ReadWrapped(const PluginSchema& schema_of, PluginOptions* wrapper,
                         std::vector<std::string> above) {
  above.push_back(NameIn(wrapper->name));
  for (const options::Spec& row : wrapper->schema) {
    const options::Value& value = wrapper->values[row.key];
    const auto* const given = std::get_if<std::string>(&value.data);
    if (!row.names_backend || given == nullptr) continue;
    const std::string table = IsNamed(kBackendKind, wrapper->name) ? "options" : wrapper->name;
    const std::string key = fmt::format("backend.{}.{}", table, row.key.substr(row.key.rfind('.') + 1));
    const Place place{value.origin.kind, {}, value.origin.place};
    const std::string name = NameIn(*given);
    const std::string where = place.text.starts_with("--set ") ? "" : key + ": ";
    if (Contains(above, name)) {
      builder_.problems.Add(
          place,
          fmt::format("{}'{}' would stand on itself: {} > {}", where, *given, fmt::join(above, " > "), name),
          "name another backend, as each can be there once");
      continue;
    }
    const auto schema = schema_of(kBackendKind, *given, builder_.spec);
    if (!schema) {
      builder_.problems.AddLines(place, where + schema.error().text);
      continue;
    }
    wrapped_.insert(name);
    PluginOptions options = Read(kBackendKind, name, *schema, true, &builder_.problems);
    Remember(options, true);
    options.named_by = row.key;
    ReadWrapped(schema_of, &options, above);
    wrapper->wrapped.push_back(std::move(options));
  }
}

void Loader::ReadPlugin(const PluginSchema& schema_of, const std::string& kind, const std::string& name) {
  const bool backend = kind == kBackendKind;
  const auto schema = schema_of(kind, name, builder_.spec);
  if (!schema) {
    if (backend && MayBePassedOver(name, schema.error())) return;
    builder_.problems.AddLines(
        builder_.PlaceOf(builder_.places.contains(kind + ".path") ? kind + ".path" : kind + ".name"),
        schema.error().text);
    return;
  }
  PluginOptions options = Read(kind, name, *schema, true, &builder_.problems);
  Remember(options, false);
  if (backend) {
    ReadWrapped(schema_of, &options, {});
    builder_.spec.backend_options.push_back(std::move(options));
  } else {
    builder_.spec.launcher_options = std::move(options);
    builder_.schema.insert(builder_.schema.end(), schema->begin(), schema->end());
  }
}

// The options of plugins that the job does not use are checked too, so that no misspelt one waits for its
// day.
void Loader::CheckOthers(const PluginSchema& schema_of) {
  std::set<std::pair<std::string, std::string>> others;
  for (const auto& [kind, table] : tables_) {
    if (Knows(kind, table->key)) others.emplace(kind, table->key);
  }
  for (const std::string& text : builder_.request->sets) {
    if (const auto plugin = PluginOf(text.substr(0, text.find('=')))) others.insert(*plugin);
  }
  for (const auto& [name, text] : builder_.request->environment) {
    for (auto& owner : OwnersOf(name)) others.insert(std::move(owner));
  }
  for (const auto& [kind, name] : others) {
    if (IsNamed(kind, name) || (kind == kBackendKind && wrapped_.contains(name))) continue;
    if (const auto schema = schema_of(kind, name, builder_.spec))
      Remember(Read(kind, name, *schema, false, &builder_.problems), false);
  }
}

// The known plugins with options that a variable such as DTRUN_CONFIG_BACKEND_GLOO_INTERFACE may set.
std::vector<std::pair<std::string, std::string>> Loader::OwnersOf(std::string_view variable) const {
  std::vector<std::pair<std::string, std::string>> owners;
  for (const std::string kind : {kBackendKind, kLauncherKind}) {
    const std::string prefix = EnvironmentName(kind + ".");
    if (!variable.starts_with(prefix)) continue;
    const std::string rest = Lowercase(std::string(variable.substr(prefix.size())));
    for (std::size_t at = rest.find('_'); at != rest.npos; at = rest.find('_', at + 1)) {
      std::string name = rest.substr(0, at);
      if (name == "options") break;
      if (Knows(kind, name)) owners.emplace_back(kind, name);
      std::ranges::replace(name, '_', '-');
      if (name.find('-') != name.npos && Knows(kind, name)) owners.emplace_back(kind, name);
    }
  }
  return owners;
}

// Once all plugins are known: what names an option of none.
void Loader::CheckPutOff() {
  for (const auto& [key, place] : put_off_sets_) {
    if (!PluginOf(key)) FailUnknown({}, key, place, false, true);
  }
  for (const std::string& name : put_off_variables_) {
    const auto is = [&](const options::Spec& row) { return EnvironmentName(row.key) == name; };
    if (std::ranges::any_of(own_rows_, is)) continue;
    const auto unread = [&](const auto& owner) { return !read_.contains(owner); };
    if (std::ranges::any_of(OwnersOf(name), unread)) continue;
    options::Schema rows = CoreSchema();
    rows.insert(rows.end(), own_rows_.begin(), own_rows_.end());
    FailVariable(name, rows);
  }
}

}  // namespace dtrun::spec
