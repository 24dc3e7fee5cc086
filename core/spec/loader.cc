#include "core/spec/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <system_error>

#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/options/text.h"
#include "core/spec/backend_choice.h"
#include "core/spec/file.h"
#include "core/spec/job_hosts.h"
#include "core/spec/lookup.h"

namespace dtrun::spec {
namespace {

// What names a job: the script in "./run.sh" or "python3 -u train.py", else a program of the user's own,
// typed with its folder, as "./train"; those of a folder "bin", such as env, say nothing about the job.
// Empty: there is neither, or its name must not be shown.
std::filesystem::path NamesakeOf(const std::vector<std::string>& command) {
  const auto is_shown = [](const std::string& word) { return MaskText(word) == word; };
  const auto is_script = [&](const std::string& word) {
    return (word.ends_with(".py") || word.ends_with(".sh")) && is_shown(word);
  };
  const std::filesystem::path program = command.empty() ? "" : command.front();
  const bool is_own = program.has_parent_path() && program.parent_path().filename() != "bin";
  auto word = command.begin();
  if (word != command.end() && !is_script(*word)) {
    word =
        std::find_if(word + 1, command.end(), [](const std::string& one) { return !one.starts_with('-'); });
    // What follows -c, or a group of flags that ends with it, is text of a shell or of Python.
    const std::string& before = word[-1];
    if (before.starts_with('-') && !before.starts_with("--") && before.ends_with('c')) return "";
  }
  if (word != command.end() && is_script(*word)) return *word;
  return is_own && is_shown(command.front()) ? program : "";
}

// The remedy for a job without a command.
std::string NoCommand(const std::string& file) {
  return fmt::format(
      "write command = [\"python3\", \"train.py\"] below [job], or type the program: dtrun {}python3 "
      "train.py",
      file.empty() ? "" : file + " ");
}

constexpr std::string_view kPrefix = "DTRUN_CONFIG_";
constexpr std::size_t kShownBytes = 60;

// "key=value" with secrets hidden.
std::string Shown(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos) return MaskText(text);
  return MaskText(text.substr(0, equals)) + "=" + MaskValue(text.substr(0, equals), text.substr(equals + 1));
}

// "--ranks=4", "-n 4".
std::string AsTyped(const std::string& flag, const std::string& value) {
  return flag + (flag.starts_with("--") ? "=" : " ") + Shortened(value, kShownBytes);
}

}  // namespace

Loaded Load(Request request, const PluginSchema& plugin_schema) {
  return std::make_shared<Loader>(Builder(std::move(request)))->Run(plugin_schema);
}

Loaded Loader::Run(const PluginSchema& plugin_schema) {
  if (!builder_.request->file.empty()) ReadDocument();
  RunPass({.table = root_.get()});
  TakeCommand();
  NameJob();
  NameLauncherByFile();
  const bool asks = readable_ && plugin_schema;
  // Cluster options may query the launcher for hosts, with its options.
  if (asks && !builder_.Failed(builder_.spec.launcher.name))
    ReadPlugin(plugin_schema, "launcher", *builder_.spec.launcher.name);
  TakeHosts(builder_, More());
  Finish(CoreSchema());
  CheckBackendName();
  CheckCommunicator();
  if (asks && !builder_.Failed(builder_.spec.backend.name)) {
    for (const std::string& name : BackendNames(builder_.spec)) {
      if (name != "none") ReadPlugin(plugin_schema, "backend", name);
    }
    CheckOthers(plugin_schema);
  }
  CheckTables();
  CheckPutOff();
  Loaded loaded{builder_.spec, std::move(builder_.problems).Take(), {}};
  loaded.more = More();
  return loaded;
}

OptionsReader Loader::More() {
  return
      [self = shared_from_this()](const std::string& kind, const std::string& name,
                                  const options::Schema& schema) { return self->Read(kind, name, schema); };
}

void Loader::ReadDocument() {
  Place whole{DTRUN_ORIGIN_FILE, {}, builder_.request->file.string()};
  readable_ = false;
  const Result<std::string> text = ReadFile(builder_.request->file);
  if (!text) {
    builder_.problems.Add(std::move(whole), text.error().text,
                          text.error().code == DTRUN_NOT_FOUND ? WhereElse(builder_.request->file) : "");
    return;
  }
  std::variant<Node, SyntaxError> parsed = ParseToml(*text);
  if (const auto* error = std::get_if<SyntaxError>(&parsed)) {
    const SyntaxProblem problem = Diagnose(*error, *text);
    builder_.problems.Add(builder_.InFile(problem.at), problem.message, problem.hint);
    return;
  }
  readable_ = true;
  root_ = std::make_shared<const Node>(std::get<Node>(std::move(parsed)));
}

void Loader::RunPass(const Pass& pass) {
  TakeGiven(pass, builder_.request->base);
  if (pass.table != nullptr) WalkTable(pass, *pass.table, pass.prefix);
  if (pass.own_table != nullptr) {
    Pass own = pass;
    own.shown = fmt::format("{}.{}.", pass.kind, pass.plugin);
    WalkTable(own, *pass.own_table, pass.prefix);
  }
  ReadEnvironment(pass);
  int number = 0;
  for (const std::string& text : builder_.request->sets) TakeSet(pass, text, ++number);
  TakeGiven(pass, builder_.request->given);
}

void Loader::WalkTable(const Pass& pass, const Node& table, const std::string& prefix) {
  for (const Member& member : table.members) TakeMember(pass, member, prefix);
}

void Loader::TakeMember(const Pass& pass, const Member& member, const std::string& prefix) {
  const std::string key = prefix + member.key;
  const bool is_table = member.value.kind == Node::Kind::kTable;
  const bool plain = member.key.find('.') == member.key.npos;  // a quoted "a.b" is not the path a.b
  if (const options::Spec* row = plain ? builder_.Find(key) : nullptr) {
    builder_.Assign(*row, member.value, builder_.spec.folder, builder_.InFile(member.value.at));
  } else if (plain && IsTable(builder_.schema, key)) {
    if (!is_table) {
      builder_.problems.Add(
          builder_.InFile(member.value.at),
          fmt::format("{}: expected a table; found {}", key, FoundText(member.value)),
          fmt::format("write [{}] and its options below it; see: dtrun config explain {}", key, key));
    } else if (!pass.kind.empty() || !Deferred(key + ".")) {
      WalkTable(pass, member.value, key + ".");
    }
  } else if (pass.kind.empty() && (prefix == "backend." || prefix == "launcher.") && is_table) {
    tables_.emplace_back(prefix.substr(0, prefix.size() - 1), &member);
  } else {
    FailUnknown(pass, key, builder_.InFile(member.at), is_table, false);
  }
}

void Loader::TakeCommand() {
  if (builder_.request->command.empty()) return;
  const options::Spec& row = builder_.spec.job.command.row();
  const Place place{DTRUN_ORIGIN_COMMAND_LINE, {}, "command line"};
  const Status checked = CheckBounds(row, builder_.request->command);
  builder_.StoreOrFail(row, checked ? Result<options::Data>(builder_.request->command) : checked.error(),
                       place);
}

void Loader::NameJob() {
  if (builder_.spec.job.name.has()) return;
  const bool by_command = builder_.request->file.empty() && builder_.spec.job.command.has();
  builder_.spec.job.name.value.data =
      JobNameOf(by_command ? NamesakeOf(*builder_.spec.job.command) : builder_.request->file);
}

void Loader::Finish(const options::Schema& rows) {
  for (const options::Spec& row : rows) {
    const options::Value& value = builder_.ValueOf(row.key);
    if (builder_.failed.contains(row.key)) continue;
    if (row.required && !value.set() && readable_) {
      const bool empty = !builder_.request->file.empty() && root_->members.empty();
      const std::string file = builder_.request->file.string();
      Place place = builder_.InFile({INT_MAX, 0});
      place.text = file;
      builder_.problems.Add(std::move(place),
                            fmt::format("{}{} is required and not set", empty ? "the file is empty: " : "",
                                        builder_.ShownKey(row.key)),
                            row.key == builder_.spec.job.command.key()
                                ? NoCommand(file)
                                : fmt::format("see: dtrun config explain {}", builder_.ShownKey(row.key)));
    }
    if (!row.must_exist) continue;
    std::vector<std::string> paths;
    if (const auto* path = std::get_if<std::string>(&value.data)) paths.push_back(*path);
    if (const auto* list = std::get_if<std::vector<std::string>>(&value.data)) paths = *list;
    for (const std::string& path : paths) {
      std::error_code failure;
      const std::filesystem::file_type type = std::filesystem::status(path, failure).type();
      const bool there = std::filesystem::exists(std::filesystem::file_status(type));
      if (there && (!row.must_be_folder || type == std::filesystem::file_type::directory)) continue;
      builder_.Fail(row, builder_.PlaceOf(row.key), "",
                    options::QuoteShort(path) + (there ? " is no folder; give the path of one"
                                                       : " does not exist; create it, or correct the path"));
    }
  }
}

void Loader::FailUnknown(const Pass& pass, const std::string& key, const Place& place, bool table,
                         bool whole) {
  const auto as_typed = [&](std::string text) {
    const std::size_t at = pass.shown.empty() ? text.npos : text.find(pass.prefix);
    return at == text.npos ? text : text.replace(at, pass.prefix.size(), pass.shown);
  };
  const std::string message =
      as_typed(fmt::format("unknown {} '{}'", table ? "table" : "option", MaskText(key)));
  // Finding the nearest key scans every option, and a file with more unknown keys is no config.
  constexpr int kMostHints = 1000;
  if (++unknown_ > kMostHints) return builder_.problems.Add(place, message, "");
  std::string hint = as_typed(UnknownHint(builder_.schema, key, whole, pass.plugin));
  if (const std::string own = OfOneBackend(pass, key); !own.empty()) hint = own + "; " + hint;
  builder_.problems.Add(place, message, hint);
  // Do not report the option that was meant as missing.
  const std::string meant = NearestKey(builder_.schema, key);
  for (const options::Spec& row : builder_.schema) {
    if (row.required && (row.key == meant || TableOf(row.key) == meant)) builder_.failed.insert(row.key);
  }
}

// Whether the key, or the name of a variable, is of [backend.options] or [launcher.options].
bool Loader::Deferred(std::string_view key) const {
  for (const char* const table : {"backend.options.", "launcher.options."}) {
    if (key.starts_with(table) || key.starts_with(EnvironmentName(table))) return true;
  }
  return false;
}

void Loader::ReadEnvironment(const Pass& pass) {
  const auto take = [&](const options::Spec& row, const std::string& name) {
    const auto found = builder_.request->environment.find(name);
    if (found != builder_.request->environment.end())
      builder_.AssignText(row, found->second, {DTRUN_ORIGIN_ENVIRONMENT, {}, name});
  };
  options::Schema rows;
  std::set<std::string> names;
  for (const options::Spec& row : builder_.schema) {
    if (!row.key.starts_with(pass.prefix)) continue;
    rows.push_back(row);
    for (const std::string& key : {row.former_key, row.key}) {
      if (key.empty() || pass.own_name_only) continue;
      names.insert(EnvironmentName(key));
      take(row, EnvironmentName(key));
    }
  }
  const std::string prefix = EnvironmentName(pass.prefix);
  auto variable = builder_.request->environment.lower_bound(prefix);
  for (; variable != builder_.request->environment.end() && variable->first.starts_with(prefix); ++variable) {
    const std::string& name = variable->first;
    if (names.contains(name) || pass.own_name_only) continue;
    if (!pass.kind.empty()) {
      FailVariable(name, rows);
    } else if (name.starts_with(EnvironmentName("backend.")) ||
               name.starts_with(EnvironmentName("launcher."))) {
      if (!Deferred(name)) put_off_variables_.push_back(name);
    } else {
      FailVariable(name, rows);
    }
  }
  if (pass.kind.empty()) return;
  for (const options::Spec& row : rows) take(row, EnvironmentName(builder_.plugin.OwnKey(row.key)));
}

void Loader::FailVariable(const std::string& name, const options::Schema& rows) {
  std::vector<std::string> tails;
  std::map<std::string, const options::Spec*> meant;
  for (const options::Spec& row : rows) {
    tails.push_back(EnvironmentName(row.key).substr(kPrefix.size()));
    meant[tails.back()] = &row;
  }
  std::string hint = fmt::format("the name is {} and the key in capitals, such as {}", kPrefix,
                                 EnvironmentName("backend.name"));
  if (const auto nearest = Nearest(name.substr(kPrefix.size()), tails)) {
    const options::Spec& row = *meant[*nearest];
    hint = fmt::format("did you mean {}{} {}? see: dtrun config explain {}", kPrefix, *nearest, Summary(row),
                       row.key);
  }
  builder_.problems.Add({DTRUN_ORIGIN_ENVIRONMENT, {}, name}, "unknown option in the environment", hint);
}

void Loader::TakeSet(const Pass& pass, const std::string& text, int number) {
  const std::size_t equals = text.find('=');
  std::string key = text.substr(0, equals);
  Place place{DTRUN_ORIGIN_COMMAND_LINE,
              {number, 0},
              "--set " + Shortened(Shown(text), kShownBytes),
              "--set " + MaskText(key)};
  if (const auto typed = builder_.request->spelled.find("--set " + text);
      typed != builder_.request->spelled.end() && equals != text.npos) {
    place.text = AsTyped(typed->second, MaskValue(key, text.substr(equals + 1)));
    place.source = typed->second;
  }
  Pass of = pass;
  if (const auto owner = PluginOf(key)) {
    if (*owner != std::pair(pass.kind, pass.plugin)) return;
    of.shown = fmt::format("{}.{}.", owner->first, owner->second);
    key.replace(0, of.shown.size(), pass.prefix);
  }
  const bool mine = pass.kind.empty() ? !Deferred(key) : key.starts_with(pass.prefix);
  if (!mine || (of.own_name_only && of.shown.empty())) return;
  if (equals == text.npos || equals == 0) {
    builder_.problems.Add(std::move(place), "expected key=value", "for example: --set backend.timeout=30s");
    return;
  }
  const std::string_view value = std::string_view(text).substr(equals + 1);
  if (const options::Spec* row = builder_.Find(key)) {
    if (row->secret) place.text = place.source;
    builder_.AssignText(*row, value, place);
    return;
  }
  for (const options::Spec& row : builder_.schema) {
    if (row.type == options::Type::kMap && key.starts_with(row.key + ".")) {
      builder_.TakeEntry(row, key.substr(row.key.size() + 1), value, place);
      return;
    }
  }
  if (IsTable(builder_.schema, key)) {
    const bool named = builder_.Find(key + ".name") != nullptr && !value.empty();
    builder_.problems.Add(
        std::move(place), fmt::format("'{}' is a table; set one of its options", key),
        named ? fmt::format("did you mean {}.name={}?", key, Shortened(MaskText(value), kShownBytes))
              : fmt::format("see: dtrun config explain {}", key));
    return;
  }
  const bool of_table = key.starts_with("backend.") || key.starts_with("launcher.");
  if (pass.kind.empty() && of_table && std::ranges::count(key, '.') > 1) {
    put_off_sets_.emplace_back(key, place);
    return;
  }
  FailUnknown(of, key, place, false, true);
}

void Loader::TakeGiven(const Pass& pass, const std::vector<Given>& values) {
  int number = 0;
  if (pass.own_name_only) return;
  for (const Given& given : values) {
    Place place{given.origin.kind, {++number, 0}, given.origin.place, given.origin.place};
    const bool mine = pass.kind.empty() ? !Deferred(given.key) : given.key.starts_with(pass.prefix);
    if (!mine) continue;
    const options::Spec* row = builder_.Find(given.key);
    if (row == nullptr) {
      FailUnknown(pass, given.key, place, false, true);
      continue;
    }
    Result<options::Data> data = options::Data();
    if (const auto* list = std::get_if<std::vector<std::string>>(&given.value)) {
      data = options::Data(*list);
      if (const Status checked = CheckBounds(*row, *data); !checked) data = checked.error();
    } else {
      const std::string& text = std::get<std::string>(given.value);
      if (place.origin == DTRUN_ORIGIN_COMMAND_LINE && !row->secret)
        place.text = AsTyped(place.source, MaskValue(given.key, text));
      data = ParseText(*row, text, builder_.start_folder);
    }
    // No order of the two is known.
    const auto set = builder_.places.find(given.key);
    const bool flag = place.origin == DTRUN_ORIGIN_COMMAND_LINE && place.source.starts_with('-');
    if (flag && set != builder_.places.end() && set->second.origin == DTRUN_ORIGIN_COMMAND_LINE && data &&
        *data != builder_.ValueOf(given.key).data) {
      builder_.Fail(*row, place, "",
                    fmt::format("{} sets it too; leave one of the two out", set->second.text));
      continue;
    }
    builder_.StoreOrFail(*row, std::move(data), place);
  }
}

}  // namespace dtrun::spec
