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
#include "core/spec/lookup.h"

namespace dtrun::spec {
namespace {

constexpr std::size_t kMaxNameBytes = 64;

bool IsNameCharacter(char c) { return IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; }

// "." and ".." have only legal characters but cannot name a new folder.
bool IsJobName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), IsNameCharacter);
}

// The script in "./run.sh" or "python3 -u train.py"; empty: there is none, or its name must not be shown.
std::filesystem::path ScriptOf(const std::vector<std::string>& command) {
  const auto is_script = [](const std::string& word) {
    return (word.ends_with(".py") || word.ends_with(".sh")) && MaskText(word) == word;
  };
  auto word = command.begin();
  if (word != command.end() && !is_script(*word)) {
    word =
        std::find_if(word + 1, command.end(), [](const std::string& one) { return !one.starts_with('-'); });
  }
  return word != command.end() && is_script(*word) ? *word : "";
}

// A legal job name derived from the stem of a config or script.
std::string JobNameOf(const std::filesystem::path& file) {
  std::string name = file.stem().string().substr(0, kMaxNameBytes);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !IsNameCharacter(c); }, '-');
  return IsJobName(name) ? name : "job";
}

bool IsControl(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

// "{date}" for "runs/{date}"; empty if all placeholders are known.
std::string UnknownPlaceholder(const std::string& pattern) {
  for (auto open = pattern.find('{'); open != std::string::npos; open = pattern.find('{', open + 1)) {
    const auto close = pattern.find('}', open);
    if (close == std::string::npos) return {};
    std::string name = pattern.substr(open, close + 1 - open);
    if (name != "{job}" && name != "{time}") return name;
  }
  return {};
}

bool IsSha256(const std::string& text) { return text.size() == 64 && IsLowerHex(Lowercase(text)); }

// The malformed pin in a pin or list of pins; empty if all are valid.
std::string BrokenPin(const options::Data& data) {
  std::vector<std::string> pins;
  if (const auto* one = std::get_if<std::string>(&data)) pins.push_back(*one);
  if (const auto* list = std::get_if<std::vector<std::string>>(&data)) pins = *list;
  for (const std::string& pin : pins) {
    if (IsSha256(pin)) continue;
    return fmt::format(
        "expected the 64 hexadecimal digits that `sha256sum FILE` prints; found {} characters, {}",
        pin.size(), options::QuoteShort(pin));
  }
  return {};
}

// Checks rules that a row cannot express; empty if all hold.
std::string BrokenRule(const options::Spec& row, const options::Data& data) {
  if (row.key == "job.name" && !IsJobName(std::get<std::string>(data))) {
    return fmt::format("expected 1 to {} of the characters A-Z a-z 0-9 . _ -; found {}", kMaxNameBytes,
                       options::QuoteShort(std::get<std::string>(data)));
  }
  const auto* const text = std::get_if<std::string>(&data);
  if (text != nullptr && std::ranges::any_of(*text, IsControl))
    return fmt::format("expected a text without control characters; found {}", options::QuoteShort(*text));
  if (row.key.ends_with(".sha256")) return BrokenPin(data);
  if (row.key == "logs.dir") {
    if (text->empty()) return "expected a folder; found \"\" (write \".\" for the working directory)";
    const auto expanded = options::ExpandPath(*text);
    if (!expanded) return expanded.error().text;
    const std::string unknown = UnknownPlaceholder(*expanded);
    if (!unknown.empty())
      return fmt::format("unknown placeholder {}; known are {{job}} and {{time}}",
                         options::QuoteShort(unknown));
  }
  if (row.key == "job.command") {
    const auto& command = std::get<std::vector<std::string>>(data);
    if (command.empty() || command[0].empty()) {
      return fmt::format(
          R"(expected a program and its arguments; found {}; write for example ["python3", "train.py"])",
          Format(row, data));
    }
  }
  return {};
}

// The remedy for a job without a command.
std::string NoCommand(const std::string& file) {
  return fmt::format(
      "write command = [\"python3\", \"train.py\"] below [job], or type the program: dtrun {}python3 "
      "train.py",
      file.empty() ? "" : file + " ");
}

// Empty only if the working folder was deleted.
std::filesystem::path StartFolder() {
  std::error_code failure;
  std::filesystem::path folder = std::filesystem::current_path(failure);
  return failure ? std::filesystem::path("/") : folder;
}

}  // namespace

Loaded Load(Request request, const PluginSchema& plugin_schema) {
  return std::make_shared<Loader>(std::move(request))->Run(plugin_schema);
}

Loader::Loader(Request request)
    : request_(std::make_shared<const Request>(std::move(request))),
      start_folder_(StartFolder()),
      schema_(CoreSchema()) {
  spec_.file = request_->file;
  spec_.devices = request_->devices;
  spec_.folder = start_folder_;
  if (!spec_.file.empty()) spec_.folder = (start_folder_ / spec_.file).lexically_normal().parent_path();
}

Loaded Loader::Run(const PluginSchema& plugin_schema) {
  if (!request_->file.empty()) ReadDocument();
  RunPass({.table = root_.get()});
  TakeCommand();
  NameJob();
  const bool asks = readable_ && plugin_schema;
  // Cluster options may query the launcher for hosts, with its options.
  if (asks && !Failed(spec_.launcher.name)) ReadPlugin(plugin_schema, "launcher", *spec_.launcher.name);
  TakeHosts();
  CheckPorts();
  Finish(CoreSchema());
  CheckBackendName();
  CheckCommunicator();
  CheckTables();
  if (asks && !Failed(spec_.backend.name)) {
    for (const std::string& name : BackendNames(spec_)) {
      if (name != "none") ReadPlugin(plugin_schema, "backend", name);
    }
    CheckOthers(plugin_schema);
  }
  Loaded loaded{spec_, std::move(problems_).Take(), {}};
  loaded.more = More();
  return loaded;
}

OptionsReader Loader::More() {
  return [self = shared_from_this()](const std::string& kind, const std::string& name,
                                     const options::Schema& schema) { return self->Read(kind, name, schema); };
}

void Loader::ReadDocument() {
  Place whole{DTRUN_ORIGIN_FILE, {}, request_->file.string()};
  readable_ = false;
  const Result<std::string> text = ReadFile(request_->file);
  if (!text) {
    problems_.Add(std::move(whole), text.error().text,
                  text.error().code == DTRUN_NOT_FOUND ? WhereElse(request_->file) : "");
    return;
  }
  std::variant<Node, SyntaxError> parsed = ParseToml(*text);
  if (const auto* error = std::get_if<SyntaxError>(&parsed)) {
    const SyntaxProblem problem = Diagnose(*error, *text);
    problems_.Add(InFile(problem.at), problem.message, problem.hint);
    return;
  }
  readable_ = true;
  root_ = std::make_shared<const Node>(std::get<Node>(std::move(parsed)));
}

void Loader::RunPass(const Pass& pass) {
  TakeGiven(pass, request_->base);
  if (pass.table != nullptr) WalkTable(pass, *pass.table, pass.prefix);
  if (pass.own_table != nullptr) {
    Pass own = pass;
    own.shown = fmt::format("{}.{}.", pass.kind, pass.plugin);
    WalkTable(own, *pass.own_table, pass.prefix);
  }
  ReadEnvironment(pass);
  ReadSets(pass);
  TakeGiven(pass, request_->given);
}

void Loader::WalkTable(const Pass& pass, const Node& table, const std::string& prefix) {
  for (const Member& member : table.members) TakeMember(pass, member, prefix);
}

void Loader::TakeMember(const Pass& pass, const Member& member, const std::string& prefix) {
  const std::string key = prefix + member.key;
  const bool is_table = member.value.kind == Node::Kind::kTable;
  const bool plain = member.key.find('.') == member.key.npos;  // a quoted "a.b" is not the path a.b
  if (const options::Spec* row = plain ? Find(key) : nullptr) {
    Assign(*row, member.value, spec_.folder, InFile(member.value.at));
  } else if (plain && IsTable(schema_, key)) {
    if (!is_table) {
      problems_.Add(
          InFile(member.value.at),
          fmt::format("{}: expected a table; found {}", key, FoundText(member.value)),
          fmt::format("write [{}] and its options below it; see: dtrun config explain {}", key, key));
    } else if (!pass.kind.empty() || !Deferred(key + ".")) {
      WalkTable(pass, member.value, key + ".");
    }
  } else if (pass.kind.empty() && (prefix == "backend." || prefix == "launcher.") && is_table) {
    tables_.emplace_back(prefix.substr(0, prefix.size() - 1), &member);
  } else {
    FailUnknown(pass, key, InFile(member.at), is_table, false);
  }
}

void Loader::TakeCommand() {
  if (request_->command.empty()) return;
  const options::Spec& row = spec_.job.command.row();
  const Place place{DTRUN_ORIGIN_COMMAND_LINE, {}, "command line"};
  if (const Status checked = CheckBounds(row, request_->command); !checked) {
    Fail(row, place, "", checked.error().text);
  } else {
    Store(row, request_->command, place);
  }
}

void Loader::NameJob() {
  if (spec_.job.name.has()) return;
  const bool by_script = request_->file.empty() && spec_.job.command.has();
  spec_.job.name.value.data = JobNameOf(by_script ? ScriptOf(*spec_.job.command) : request_->file);
}

void Loader::Finish(const options::Schema& rows) {
  for (const options::Spec& row : rows) {
    const options::Value& value = ValueOf(row.key);
    if (failed_.contains(row.key)) continue;
    if (row.required && !value.set() && readable_) {
      const bool empty = !request_->file.empty() && root_->members.empty();
      const std::string file = request_->file.string();
      Place place = InFile({INT_MAX, 0});
      place.text = file;
      problems_.Add(std::move(place),
                    fmt::format("{}{} is required and not set", empty ? "the file is empty: " : "", row.key),
                    row.key == spec_.job.command.key() ? NoCommand(file)
                                                       : fmt::format("see: dtrun config explain {}", row.key));
    }
    if (!row.must_exist) continue;
    std::vector<std::string> paths;
    if (const auto* path = std::get_if<std::string>(&value.data)) paths.push_back(*path);
    if (const auto* list = std::get_if<std::vector<std::string>>(&value.data)) paths = *list;
    for (const std::string& path : paths) {
      std::error_code failure;
      if (std::filesystem::exists(path, failure)) continue;
      Fail(row, PlaceOf(row.key), "",
           fmt::format("{} does not exist; create it, or correct the path", options::QuoteShort(path)));
    }
  }
}

void Loader::Assign(const options::Spec& row, const Node& node, const std::filesystem::path& folder,
                    const Place& place) {
  std::vector<Fault> faults;
  options::Data data = Convert(row, node, folder, faults);
  for (const Fault& fault : faults) {
    Fail(row, place.origin == DTRUN_ORIGIN_FILE ? InFile(fault.at) : place, fault.part, fault.message);
  }
  if (!faults.empty()) return;
  Store(row, std::move(data), place);
  if (place.origin != DTRUN_ORIGIN_FILE) return;
  for (const Member& member : node.members)
    spec_.entry_places[row.key + "." + member.key] = InFile(member.at).text;
}

void Loader::Store(const options::Spec& row, options::Data data, const Place& place) {
  if (!row.replaced_by.empty()) {
    Fail(row, place, "", fmt::format("this option is deprecated; use '{}'", row.replaced_by));
    return;
  }
  if (const std::string broken = BrokenRule(row, data); !broken.empty()) {
    Fail(row, place, "", broken);
    return;
  }
  const std::string& source = place.source.empty() ? place.text : place.source;
  ValueOf(row.key) = {std::move(data), {place.origin, source}};
  places_[row.key] = place;
}

void Loader::Fail(const options::Spec& row, const Place& place, const std::string& part,
                  const std::string& message) {
  failed_.insert(row.key);
  // "--set job.grace=abc" already names the key.
  const bool named = part.empty() && place.text.starts_with("--set " + row.key);
  problems_.Add(place, named ? message : fmt::format("{}{}: {}", row.key, part, message),
                fmt::format("see: dtrun config explain {}", row.key));
}

void Loader::FailUnknown(const Pass& pass, const std::string& key, const Place& place, bool table,
                         bool whole) {
  const auto as_typed = [&](std::string text) {
    const std::size_t at = pass.shown.empty() ? text.npos : text.find(pass.prefix);
    return at == text.npos ? text : text.replace(at, pass.prefix.size(), pass.shown);
  };
  const std::string message = as_typed(fmt::format("unknown {} '{}'", table ? "table" : "option", MaskText(key)));
  // Finding the nearest key scans every option, and a file with more unknown keys is no config.
  constexpr int kMostHints = 1000;
  if (++unknown_ > kMostHints) return problems_.Add(place, message, "");
  std::string hint = as_typed(UnknownHint(schema_, key, whole, pass.plugin));
  if (const std::string own = OfOneBackend(pass, key); !own.empty()) hint = own + "; " + hint;
  problems_.Add(place, message, hint);
  // Do not report the option that was meant as missing.
  const std::string meant = NearestKey(schema_, key);
  for (const options::Spec& row : schema_) {
    if (row.required && (row.key == meant || TableOf(row.key) == meant)) failed_.insert(row.key);
  }
}

const options::Spec* Loader::Find(std::string_view key) const { return FindSpec(schema_, key); }

options::Value& Loader::ValueOf(const std::string& key) {
  AnyField* field = spec_.FieldOf(key);
  return field != nullptr ? field->value : plugin_.values[key];
}

bool Loader::Deferred(std::string_view key) const {
  return key.starts_with("backend.options.") || key.starts_with("launcher.options.");
}

Place Loader::InFile(Position at) const {
  const std::string file = request_->file.string();
  if (file.empty()) return {};
  const bool whole = at.line == 0 || at.line == INT_MAX;
  return {DTRUN_ORIGIN_FILE, at, whole ? file : fmt::format("{}:{}:{}", file, at.line, at.column)};
}

Place Loader::PlaceOf(const std::string& key) const {
  const auto place = places_.find(key);
  return place == places_.end() ? InFile({}) : place->second;
}

}  // namespace dtrun::spec
