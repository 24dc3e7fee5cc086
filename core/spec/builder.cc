#include "core/spec/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <system_error>

#include "core/base/text.h"
#include "core/options/text.h"
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

// Starts like a TOML list or table, so it is not a plain word.
bool LooksLikeToml(options::Type type, std::string_view text) {
  const bool list =
      type == options::Type::kList || type == options::Type::kPathList || type == options::Type::kNames;
  return (list && text.starts_with('[')) || (type == options::Type::kMap && text.starts_with('{'));
}

// Empty only if the working folder was deleted.
std::filesystem::path StartFolder() {
  std::error_code failure;
  std::filesystem::path folder = std::filesystem::current_path(failure);
  return failure ? std::filesystem::path("/") : folder;
}

}  // namespace

// A legal job name derived from the stem of a config or script.
std::string JobNameOf(const std::filesystem::path& file) {
  std::string name = file.stem().string().substr(0, kMaxNameBytes);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !IsNameCharacter(c); }, '-');
  return IsJobName(name) ? name : "job";
}

Builder::Builder(Request given)
    : request(std::make_shared<const Request>(std::move(given))),
      start_folder(StartFolder()),
      schema(CoreSchema()) {
  spec.file = request->file;
  spec.devices = request->devices;
  spec.folder = start_folder;
  if (!spec.file.empty()) spec.folder = (start_folder / spec.file).lexically_normal().parent_path();
}

void Builder::Assign(const options::Spec& row, const Node& node, const std::filesystem::path& folder,
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
    spec.entry_places[row.key + "." + member.key] = InFile(member.at).text;
}

void Builder::AssignText(const options::Spec& row, std::string_view text, const Place& place) {
  const std::optional<Node> node = ParseTomlValue(text);
  if (node && Fits(row.type, node->kind)) {
    Assign(row, *node, start_folder, place);
  } else if (LooksLikeToml(row.type, text)) {
    Fail(row, place, "",
         fmt::format("expected {}; found {}, which is not TOML", ExpectedText(row),
                     row.secret ? "(secret)" : options::QuoteShort(text)));
  } else {
    StoreOrFail(row, ParseText(row, text, start_folder), place);
  }
}

void Builder::TakeEntry(const options::Spec& map, const std::string& name, std::string_view text,
                        const Place& place) {
  std::map<std::string, std::string> entries;
  const options::Value& value = ValueOf(map.key);
  if (value.set()) entries = std::get<std::map<std::string, std::string>>(value.data);
  const std::optional<Node> node = ParseTomlValue(text);
  entries[name] = node && node->kind == Node::Kind::kString ? node->text : std::string(text);
  const Status checked = CheckBounds(map, entries);
  StoreOrFail(map, checked ? Result<options::Data>(std::move(entries)) : checked.error(), place, "." + name);
}

void Builder::StoreOrFail(const options::Spec& row, Result<options::Data> data, const Place& place,
                          const std::string& part) {
  data ? Store(row, *std::move(data), place) : Fail(row, place, part, data.error().text);
}

void Builder::Store(const options::Spec& row, options::Data data, const Place& place) {
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
  places[row.key] = place;
}

const options::Spec* Builder::Find(std::string_view key) const { return FindSpec(schema, key); }

options::Value& Builder::ValueOf(const std::string& key) {
  AnyField* field = spec.FieldOf(key);
  return field != nullptr ? field->value : plugin.values[key];
}

// The key of an option of a plugin, in the plugin's own table where it has no other.
std::string Builder::ShownKey(const std::string& key) const {
  const std::string prefix = plugin.kind + ".options.";
  return own_table.empty() || !key.starts_with(prefix) ? key : own_table + key.substr(prefix.size());
}

void Builder::Fail(const options::Spec& row, const Place& place, const std::string& part,
                   const std::string& message) {
  failed.insert(row.key);
  // "--set job.grace=abc" already names the key.
  const std::string key = ShownKey(row.key);
  const bool named = part.empty() && place.text.starts_with("--set " + key);
  problems.Add(place, named ? message : fmt::format("{}{}: {}", key, part, message),
               fmt::format("see: dtrun config explain {}", key));
}

Place Builder::InFile(Position at) const {
  const std::string file = request->file.string();
  if (file.empty()) return {};
  const bool whole = at.line == 0 || at.line == INT_MAX;
  return {DTRUN_ORIGIN_FILE, at, whole ? file : fmt::format("{}:{}:{}", file, at.line, at.column)};
}

Place Builder::PlaceOf(const std::string& key) const {
  const auto place = places.find(key);
  return place == places.end() ? InFile({}) : place->second;
}

}  // namespace dtrun::spec
