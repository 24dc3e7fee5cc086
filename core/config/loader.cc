#include "core/config/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <system_error>

#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/config/backend_choice.h"
#include "core/config/file.h"
#include "core/config/lookup.h"
#include "core/config/syntax.h"
#include "core/options/path_text.h"
#include "core/options/text.h"

namespace dtrun::config {
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

// Checks rules that a spec cannot express; empty if all hold.
std::string BrokenRule(const options::Spec& spec, const options::Data& data) {
  if (spec.key == "job.name" && !IsJobName(std::get<std::string>(data))) {
    return fmt::format("expected 1 to {} of the characters A-Z a-z 0-9 . _ -; found {}", kMaxNameBytes,
                       options::QuoteShort(std::get<std::string>(data)));
  }
  const auto* const text = std::get_if<std::string>(&data);
  if (text != nullptr && std::ranges::any_of(*text, IsControl))
    return fmt::format("expected a text without control characters; found {}", options::QuoteShort(*text));
  if (spec.key.ends_with(".sha256")) return BrokenPin(data);
  if (spec.key == "logs.dir") {
    if (text->empty()) return "expected a folder; found \"\" (write \".\" for the working directory)";
    const auto expanded = options::ExpandPath(*text);
    if (!expanded) return expanded.error().text;
    const std::string unknown = UnknownPlaceholder(*expanded);
    if (!unknown.empty())
      return fmt::format("unknown placeholder {}; known are {{job}} and {{time}}",
                         options::QuoteShort(unknown));
  }
  if (spec.key == "job.command") {
    const auto& command = std::get<std::vector<std::string>>(data);
    if (command.empty() || command[0].empty()) {
      return fmt::format(
          R"(expected a program and its arguments; found {}; write for example ["python3", "train.py"])",
          Format(spec, data));
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

Loaded Load(const Request& request, const PluginSchema& plugin_schema) {
  return Loader(request, plugin_schema).Run();
}

Loader::Loader(const Request& request, const PluginSchema& plugin_schema)
    : request_(request), plugin_schema_(plugin_schema), start_folder_(StartFolder()) {
  settings_.file_ = request.file;
  settings_.devices_ = request.devices;
  settings_.folder_ = start_folder_;
  if (!request.file.empty())
    settings_.folder_ = (start_folder_ / request.file).lexically_normal().parent_path();
}

Loaded Loader::Run() {
  settings_.schema_ = CoreSchema();
  AddDefaults(0);
  if (!request_.file.empty()) ReadDocument();
  RunPass({"", "", &root_});
  TakeCommand();
  NameJob();
  const std::size_t own = settings_.schema_.size();
  if (!request_.launcher.empty()) problems_ = {};  // problems of other options are reported elsewhere
  if (readable_) AskPlugin("launcher");            // cluster options may query it for hosts, with its options
  if (!request_.launcher.empty()) return {std::move(settings_), std::move(problems_).Take()};
  TakeHosts();
  Finish(0, own);
  CheckBackendName();
  CheckCommunicator();
  CheckBackendTables();
  CheckLauncherTables();
  if (readable_) AskPlugin("backend");
  return {std::move(settings_), std::move(problems_).Take()};
}

void Loader::ReadDocument() {
  Place whole{DTRUN_ORIGIN_FILE, {}, request_.file.string()};
  readable_ = false;
  const Result<std::string> text = ReadFile(request_.file);
  if (!text) {
    problems_.Add(std::move(whole), text.error().text,
                  text.error().code == DTRUN_NOT_FOUND ? WhereElse(request_.file) : "");
    return;
  }
  std::variant<Node, SyntaxError> parsed = ParseToml(*text);
  if (const auto* error = std::get_if<SyntaxError>(&parsed)) {
    const SyntaxProblem problem = Diagnose(*error, *text);
    problems_.Add(InFile(problem.at), problem.message, problem.hint);
    return;
  }
  readable_ = true;
  root_ = std::get<Node>(std::move(parsed));
}

void Loader::RunPass(const Pass& pass) {
  TakeGiven(pass, request_.base);
  if (pass.table != nullptr) WalkTable(pass, *pass.table, pass.prefix);
  if (pass.own_table != nullptr) {
    Pass own = pass;
    own.shown = fmt::format("{}.{}.", pass.prefix.substr(0, pass.prefix.find('.')), pass.plugin);
    WalkTable(own, *pass.own_table, pass.prefix);
  }
  ReadEnvironment(pass);
  ReadSets(pass);
  TakeGiven(pass, request_.given);
}

void Loader::AskPlugin(const std::string& kind) {
  const std::string name_key = kind + ".name";
  if (!plugin_schema_ || failed_.count(name_key) != 0) return;
  const std::string name = kind == "backend" ? ChosenBackend() : ChosenLauncher();
  if (kind == "backend" && name == "none") return;
  const Result<options::Schema> schema = plugin_schema_(kind, name, settings_);
  if (!schema) {
    if (kind == "backend" && (IsUnnamed(name) || MayBePassedOver(name, schema.error()))) return;
    auto place = places_.find(kind + ".path");
    if (place == places_.end()) place = places_.find(name_key);
    problems_.AddLines(place == places_.end() ? InFile({}) : place->second, schema.error().text);
    return;
  }
  const std::size_t first = settings_.schema_.size();
  settings_.schema_.insert(settings_.schema_.end(), schema->begin(), schema->end());
  AddDefaults(first);
  Pass pass{kind + ".options.", name, nullptr};
  for (const Member& table : root_.members) {
    if (table.key != kind) continue;
    for (const Member& member : table.value.members) {
      if (member.key == "options" && member.value.kind == Node::Kind::kTable) pass.table = &member.value;
    }
  }
  if (kind == "backend") {
    pass.own_name_only = IsUnnamed(name);
    FindBackendTables(&pass);
  } else {
    FindLauncherTables(&pass);
  }
  RunPass(pass);
  // A launcher without options in the config may be queried even if a required option is unset.
  if (request_.launcher.empty() || pass.own_table != nullptr) Finish(first, settings_.schema_.size());
}

void Loader::WalkTable(const Pass& pass, const Node& table, const std::string& prefix) {
  for (const Member& member : table.members) TakeMember(pass, member, prefix);
}

void Loader::TakeMember(const Pass& pass, const Member& member, const std::string& prefix) {
  const std::string key = prefix + member.key;
  const bool is_table = member.value.kind == Node::Kind::kTable;
  const bool plain = member.key.find('.') == member.key.npos;  // a quoted "a.b" is not the path a.b
  if (const options::Spec* spec = plain ? settings_.Find(key) : nullptr) {
    Assign(*spec, member.value, settings_.folder_, InFile(member.value.at));
  } else if (plain && IsTable(settings_.schema_, key)) {
    if (!is_table) {
      problems_.Add(
          InFile(member.value.at),
          fmt::format("{}: expected a table; found {}", key, FoundText(member.value)),
          fmt::format("write [{}] and its options below it; see: dtrun config explain {}", key, key));
    } else if (!pass.prefix.empty() || !Deferred(key + ".")) {
      WalkTable(pass, member.value, key + ".");
    }
  } else if (pass.prefix.empty() && prefix == "backend." && is_table) {
    backend_tables_.push_back(&member);
  } else if (pass.prefix.empty() && prefix == "launcher." && is_table) {
    launcher_tables_.push_back(&member);
  } else {
    FailUnknown(pass, key, InFile(member.at), is_table, false);
  }
}

void Loader::TakeCommand() {
  if (request_.command.empty()) return;
  const options::Spec& spec = *settings_.Find("job.command");
  const Place place{DTRUN_ORIGIN_COMMAND_LINE, {}, "command line"};
  if (const Status checked = CheckBounds(spec, request_.command); !checked) {
    Fail(spec, place, "", checked.error().text);
  } else {
    Store(spec, request_.command, place);
  }
}

void Loader::NameJob() {
  options::Value& name = settings_.values_.find("job.name")->second;
  if (name.set()) return;
  const auto* const command = std::get_if<std::vector<std::string>>(&settings_.Get("job.command").data);
  const bool by_script = request_.file.empty() && command != nullptr;
  name.data = JobNameOf(by_script ? ScriptOf(*command) : request_.file);
}

void Loader::Finish(std::size_t first_spec, std::size_t end) {
  for (std::size_t i = first_spec; i < end; ++i) {
    const options::Spec& spec = settings_.schema_[i];
    const options::Value& value = settings_.Get(spec.key);
    if (failed_.count(spec.key) != 0) continue;
    if (spec.required && !value.set() && readable_) {
      const bool empty = !request_.file.empty() && root_.members.empty();
      Place place = InFile({INT_MAX, 0});
      place.text = request_.file.string();
      problems_.Add(std::move(place),
                    fmt::format("{}{} is required and not set", empty ? "the file is empty: " : "", spec.key),
                    spec.key == "job.command" ? NoCommand(request_.file.string())
                                              : fmt::format("see: dtrun config explain {}", spec.key));
    }
    if (!spec.must_exist) continue;
    std::vector<std::string> paths;
    if (const auto* path = std::get_if<std::string>(&value.data)) paths.push_back(*path);
    if (const auto* list = std::get_if<std::vector<std::string>>(&value.data)) paths = *list;
    for (const std::string& path : paths) {
      std::error_code failure;
      if (std::filesystem::exists(path, failure)) continue;
      const auto place = places_.find(spec.key);
      Fail(spec, place == places_.end() ? InFile({}) : place->second, "",
           fmt::format("{} does not exist; create it, or correct the path", options::QuoteShort(path)));
    }
  }
}

void Loader::AddDefaults(std::size_t first_spec) {
  for (std::size_t i = first_spec; i < settings_.schema_.size(); ++i) {
    const options::Spec& spec = settings_.schema_[i];
    options::Value& value = settings_.values_[spec.key];
    if (!spec.default_text) continue;
    Result<options::Data> data = ParseText(spec, *spec.default_text, settings_.folder_);
    if (data) {
      value.data = *std::move(data);
    } else {
      Fail(spec, InFile({}), "",
           fmt::format("its default is unusable, a defect of the {}: {}", spec.reader, data.error().text));
    }
  }
}

void Loader::Assign(const options::Spec& spec, const Node& node, const std::filesystem::path& folder,
                    const Place& place) {
  std::vector<Fault> faults;
  options::Data data = Convert(spec, node, folder, faults);
  for (const Fault& fault : faults) {
    Fail(spec, place.origin == DTRUN_ORIGIN_FILE ? InFile(fault.at) : place, fault.part, fault.message);
  }
  if (!faults.empty()) return;
  Store(spec, std::move(data), place);
  if (place.origin != DTRUN_ORIGIN_FILE) return;
  for (const Member& member : node.members)
    settings_.entry_places_[spec.key + "." + member.key] = InFile(member.at).text;
}

void Loader::Store(const options::Spec& spec, options::Data data, const Place& place) {
  if (!spec.replaced_by.empty()) {
    Fail(spec, place, "", fmt::format("this option is deprecated; use '{}'", spec.replaced_by));
    return;
  }
  if (const std::string broken = BrokenRule(spec, data); !broken.empty()) {
    Fail(spec, place, "", broken);
    return;
  }
  const std::string& source = place.source.empty() ? place.text : place.source;
  settings_.values_[spec.key] = {std::move(data), {place.origin, source}};
  places_[spec.key] = place;
}

void Loader::Fail(const options::Spec& spec, const Place& place, const std::string& part,
                  const std::string& message) {
  failed_.insert(spec.key);
  // "--set job.grace=abc" already names the key.
  const bool named = part.empty() && place.text.starts_with("--set " + spec.key);
  problems_.Add(place, named ? message : fmt::format("{}{}: {}", spec.key, part, message),
                fmt::format("see: dtrun config explain {}", spec.key));
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
  std::string hint = as_typed(UnknownHint(settings_.schema_, key, whole, pass.plugin));
  if (const std::string own = OfOneBackend(pass, key); !own.empty()) hint = own + "; " + hint;
  problems_.Add(place, message, hint);
  // Do not report the option that was meant as missing.
  const std::string meant = NearestKey(settings_.schema_, key);
  for (const options::Spec& spec : settings_.schema_) {
    if (spec.required && (spec.key == meant || TableOf(spec.key) == meant)) failed_.insert(spec.key);
  }
}

bool Loader::Deferred(std::string_view key) const {
  return key.starts_with("backend.options.") || key.starts_with("launcher.options.");
}

Place Loader::InFile(Position at) const {
  const std::string file = request_.file.string();
  if (file.empty()) return {};
  const bool whole = at.line == 0 || at.line == INT_MAX;
  return {DTRUN_ORIGIN_FILE, at, whole ? file : fmt::format("{}:{}:{}", file, at.line, at.column)};
}

}  // namespace dtrun::config
