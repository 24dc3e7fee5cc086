#include "core/spec/lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/text.h"
#include "core/options/text.h"
#include "core/options/value.h"
#include "core/spec/job_spec.h"

namespace dtrun::spec {
namespace {

// Tables that exist even if no plugin has added options to them.
constexpr std::string_view kPluginTables[] = {"backend.options", "launcher.options"};

// Our options, with the names that other launchers, and their users, have for them, each between blanks; with
// a table, only in that one.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"job.processes_per_host",
     " nproc_per_node ntasks_per_node ppn nproc num_gpus gpus gpus_per_node ranks_per_node ranks_per_host "
     "processes_per_node "},
    {"job.ranks", " np n nprocs ntasks num_processes world_size "},
    {"cluster.host_count", " nnodes num_nodes num_machines job.nodes "},
    {"cluster.hosts", " nodes "},
    {"job.time_limit", " timeout "},
    {"cluster.host_index", " node_rank machine_rank "},
    {"restart.max", " max_restarts restarts "},
    {"logs.dir", " log_dir "},
    {"job.cwd", " workdir working_dir "},
    {"job.command", " cmd program script "},
    {"job.env", " environment "},
    {"backend.name", " transport "},
};

std::string Join(const std::string& table, std::string_view name) {
  return table.empty() ? std::string(name) : fmt::format("{}.{}", table, name);
}

// The option that other launchers call `key`; empty: none.
std::string Elsewhere(const options::Schema& schema, std::string_view key) {
  for (const std::string_view name : {key, NameOf(key)}) {
    const std::string word = fmt::format(" {} ", name);
    for (const auto& [option, names] : kElsewhere) {
      const bool its = names.find(word) != names.npos && name.find(' ') == name.npos;
      if (its && FindSpec(schema, option) != nullptr) return std::string(option);
    }
  }
  return {};
}

std::vector<std::string> TablesOf(const options::Schema& schema) {
  std::vector<std::string> tables(std::begin(kPluginTables), std::end(kPluginTables));
  for (const options::Spec& spec : schema) {
    std::string table(TableOf(spec.key));
    if (std::ranges::find(tables, table) == tables.end()) tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace

const options::Spec* FindSpec(const options::Schema& schema, std::string_view key) {
  for (const options::Spec& spec : schema) {
    if (spec.key == key || (!key.empty() && spec.former_key == key)) return &spec;
  }
  return nullptr;
}

bool IsTable(const options::Schema& schema, std::string_view key) {
  if (std::find(std::begin(kPluginTables), std::end(kPluginTables), key) != std::end(kPluginTables))
    return true;
  return std::any_of(schema.begin(), schema.end(), [&](const options::Spec& spec) {
    return spec.key.size() > key.size() && spec.key[key.size()] == '.' && spec.key.starts_with(key);
  });
}

std::string_view TableOf(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  return dot == key.npos ? std::string_view() : key.substr(0, dot);
}

std::string_view NameOf(std::string_view key) { return key.substr(key.rfind('.') + 1); }

std::vector<std::string> NamesIn(const options::Schema& schema, const std::string& table) {
  std::vector<std::string> options, tables;
  const auto add = [&](std::string_view key) {
    if (!table.empty() && !(key.starts_with(table) && key.size() > table.size() && key[table.size()] == '.'))
      return;
    const std::string_view rest = table.empty() ? key : key.substr(table.size() + 1);
    const std::string name(rest.substr(0, rest.find('.')));
    std::vector<std::string>& names = name.size() == rest.size() && FindSpec(schema, key) ? options : tables;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const options::Spec& spec : schema) add(spec.key);
  for (const std::string_view key : kPluginTables) add(key);
  options.insert(options.end(), tables.begin(), tables.end());
  return options;
}

std::string Summary(const options::Spec& spec) {
  if (spec.required) return fmt::format("({}, required)", TypeText(spec));
  if (!spec.default_text) return fmt::format("({})", TypeText(spec));
  const bool bare = spec.type == options::Type::kBool || spec.type == options::Type::kInt ||
                    spec.type == options::Type::kUint || spec.type == options::Type::kFloat ||
                    spec.type == options::Type::kCount;
  return fmt::format("({}, default {})", TypeText(spec),
                     spec.secret ? "(secret)"
                     : bare      ? *spec.default_text
                                 : options::Quote(*spec.default_text));
}

std::string NearestKey(const options::Schema& schema, const std::string& key) {
  const std::string table(TableOf(key));
  const std::string name(NameOf(key));
  const auto same =
      std::ranges::find_if(schema, [&](const options::Spec& spec) { return NameOf(spec.key) == name; });
  if (std::string elsewhere = Elsewhere(schema, key); !elsewhere.empty()) return elsewhere;
  // Outside any table, an exact option name is better evidence than a similar table name.
  if (table.empty() && same != schema.end()) return same->key;
  // With a typo in the table's name, the option's name is still right.
  if (const auto meant = Nearest(table, TablesOf(schema)); meant && !IsTable(schema, table)) {
    if (const auto nearest = Nearest(name, NamesIn(schema, *meant))) return Join(*meant, *nearest);
  }
  if (const auto nearest = Nearest(name, NamesIn(schema, table))) return Join(table, *nearest);
  if (same != schema.end()) return same->key;
  std::vector<std::string> keys;
  for (const options::Spec& spec : schema) keys.push_back(spec.key);
  return Nearest(key, keys).value_or("");
}

std::string KeyNamed(const options::Schema& schema, std::string name) {
  std::ranges::replace(name, '-', '_');
  for (const std::string& key : {name, "job." + name}) {
    if (FindSpec(schema, key) != nullptr) return key;
  }
  const auto has_it = [&](const options::Spec& spec) { return NameOf(spec.key) == name; };
  const auto found = std::ranges::find_if(schema, has_it);
  return std::ranges::count_if(schema, has_it) == 1 ? found->key : "";
}

std::string UnknownHint(const options::Schema& schema, const std::string& key, bool whole,
                        const std::string& plugin) {
  const std::string table(TableOf(key));
  const auto see = [&](const std::string& what) {
    return plugin.empty() ? fmt::format("see: dtrun config explain {}", what)
                          : fmt::format("see: dtrun plugins describe {}", plugin);
  };
  const std::string meant = NearestKey(schema, key);
  if (!meant.empty()) {
    const bool neighbour = !whole && TableOf(meant) == table;
    const options::Spec* spec = FindSpec(schema, meant);
    std::string text = fmt::format("did you mean '{}'{}", neighbour ? std::string(NameOf(meant)) : meant,
                                   spec == nullptr ? "" : " " + Summary(*spec));
    if (meant == Elsewhere(schema, key)) {  // another option may have the name itself
      const auto same = [&](const options::Spec& one) { return NameOf(one.key) == NameOf(key); };
      if (const auto also = std::ranges::find_if(schema, same); also != schema.end() && also->key != meant)
        text += fmt::format(" or '{}' {}", also->key, Summary(*also));
    }
    return fmt::format("{}? {}", text, see(meant));
  }
  if (!table.empty() && !IsTable(schema, table)) {
    return fmt::format("tables: {}", fmt::join(NamesIn(schema, ""), ", "));
  }
  const std::vector<std::string> names = NamesIn(schema, table);
  if (table.empty()) return fmt::format("tables: {}", fmt::join(names, ", "));
  if (names.empty()) return fmt::format("{} has no options here", plugin.empty() ? table : plugin);
  return fmt::format("known here: {}; {}", fmt::join(names, ", "), see(table));
}

std::map<std::string, std::string> OptionsGiven(const JobSpec& spec) {
  std::map<std::string, std::string> given;
  for (const options::Spec& row : spec.schema()) {
    const options::Value& value = spec.Get(row.key);
    const bool typed =
        value.origin.kind == DTRUN_ORIGIN_FILE || value.origin.kind == DTRUN_ORIGIN_COMMAND_LINE;
    if (typed && row.scope == DTRUN_SCOPE_JOB && TableOf(row.key) != "cluster")
      given.emplace(row.key, options::Format(row, value.data));
  }
  return given;
}

std::vector<std::string> PluginOptionsSet(const JobSpec& spec) {
  std::vector<std::string> texts;
  for (const options::Spec& row : spec.schema()) {
    const options::Value& value = spec.Get(row.key);
    if (FindSpec(CoreSchema(), row.key) != nullptr || value.origin.kind == DTRUN_ORIGIN_DEFAULT) continue;
    texts.push_back(
        fmt::format("{} = {} ({})", row.key, options::Format(row, value.data), value.origin.place));
  }
  return texts;
}

}  // namespace dtrun::spec
