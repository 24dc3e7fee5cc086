// The loader's part for environment variables, --set, and values in other notations.
#include <fmt/format.h>

#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/options/text.h"
#include "core/spec/loader.h"
#include "core/spec/lookup.h"

namespace dtrun::spec {
namespace {

constexpr std::string_view kPrefix = "DTRUN_CONFIG_";
constexpr std::size_t kShownBytes = 60;

// Starts like a TOML list or table, so it is not a plain word.
bool LooksLikeToml(options::Type type, std::string_view text) {
  const bool list =
      type == options::Type::kList || type == options::Type::kPathList || type == options::Type::kNames;
  return (list && text.starts_with('[')) || (type == options::Type::kMap && text.starts_with('{'));
}

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

void Loader::ReadEnvironment(const Pass& pass) {
  if (pass.own_name_only) return;  // no variable contains a backend's name
  std::vector<std::string> names;
  std::map<std::string, std::string> keys;
  for (const options::Spec& row : schema_) {
    if (!row.key.starts_with(pass.prefix)) continue;
    names.push_back(EnvironmentName(row.key));
    keys[names.back()] = row.key;
    if (!row.former_key.empty()) keys[EnvironmentName(row.former_key)] = row.key;
  }
  const std::string prefix = EnvironmentName(pass.prefix);
  for (auto variable = request_->environment.lower_bound(prefix);
       variable != request_->environment.end() && variable->first.starts_with(prefix); ++variable) {
    const auto& [name, text] = *variable;
    const Place place{DTRUN_ORIGIN_ENVIRONMENT, {}, name};
    if (const auto key = keys.find(name); key != keys.end()) {
      AssignText(*Find(key->second), text, place);
    } else if (!pass.kind.empty() || (!name.starts_with(EnvironmentName("backend.options.")) &&
                                        !name.starts_with(EnvironmentName("launcher.options.")))) {
      const auto nearest = Nearest(name.substr(kPrefix.size()), [&] {
        std::vector<std::string> tails;
        for (const std::string& candidate : names) tails.push_back(candidate.substr(kPrefix.size()));
        return tails;
      }());
      std::string hint = fmt::format("the name is {} and the key in capitals, such as {}", kPrefix,
                                     EnvironmentName("backend.name"));
      if (nearest) {
        const std::string& key_meant = keys[std::string(kPrefix) + *nearest];
        hint = fmt::format("did you mean {}{} {}? see: dtrun config explain {}", kPrefix, *nearest,
                           Summary(*Find(key_meant)), key_meant);
      }
      problems_.Add(place, "unknown option in the environment", hint);
    }
  }
}

void Loader::ReadSets(const Pass& pass) {
  int number = 0;
  for (const std::string& text : request_->sets) TakeSet(pass, text, ++number);
}

void Loader::TakeSet(const Pass& pass, const std::string& text, int number) {
  const std::size_t equals = text.find('=');
  std::string key = text.substr(0, equals);
  Place place{DTRUN_ORIGIN_COMMAND_LINE,
              {number, 0},
              "--set " + Shortened(Shown(text), kShownBytes),
              "--set " + MaskText(key)};
  if (const auto typed = request_->spelled.find("--set " + text);
      typed != request_->spelled.end() && equals != text.npos) {
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
    problems_.Add(std::move(place), "expected key=value", "for example: --set backend.timeout=30s");
    return;
  }
  const std::string_view value = std::string_view(text).substr(equals + 1);
  if (const options::Spec* row = Find(key)) {
    if (row->secret) place.text = place.source;
    AssignText(*row, value, place);
    return;
  }
  for (const options::Spec& row : schema_) {
    if (row.type == options::Type::kMap && key.starts_with(row.key + ".")) {
      TakeEntry(row, key.substr(row.key.size() + 1), value, place);
      return;
    }
  }
  if (IsTable(schema_, key)) {
    const bool named = Find(key + ".name") != nullptr && !value.empty();
    problems_.Add(std::move(place), fmt::format("'{}' is a table; set one of its options", key),
                  named
                      ? fmt::format("did you mean {}.name={}?", key, Shortened(MaskText(value), kShownBytes))
                      : fmt::format("see: dtrun config explain {}", key));
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
    const options::Spec* row = Find(given.key);
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
      data = ParseText(*row, text, start_folder_);
    }
    if (data) {
      Store(*row, *std::move(data), place);
    } else {
      Fail(*row, place, "", data.error().text);
    }
  }
}

void Loader::TakeEntry(const options::Spec& map, const std::string& name, std::string_view text,
                       const Place& place) {
  std::map<std::string, std::string> entries;
  const options::Value& value = ValueOf(map.key);
  if (value.set()) entries = std::get<std::map<std::string, std::string>>(value.data);
  const std::optional<Node> node = ParseTomlValue(text);
  entries[name] = node && node->kind == Node::Kind::kString ? node->text : std::string(text);
  const Status checked = CheckBounds(map, entries);
  if (checked) {
    Store(map, std::move(entries), place);
  } else {
    Fail(map, place, "." + name, checked.error().text);
  }
}

void Loader::AssignText(const options::Spec& row, std::string_view text, const Place& place) {
  const std::optional<Node> node = ParseTomlValue(text);
  if (node && Fits(row.type, node->kind)) {
    Assign(row, *node, start_folder_, place);
  } else if (LooksLikeToml(row.type, text)) {
    Fail(row, place, "",
         fmt::format("expected {}; found {}, which is not TOML", ExpectedText(row),
                     row.secret ? "(secret)" : options::QuoteShort(text)));
  } else {
    Result<options::Data> data = ParseText(row, text, start_folder_);
    if (data) {
      Store(row, *std::move(data), place);
    } else {
      Fail(row, place, "", data.error().text);
    }
  }
}

}  // namespace dtrun::spec
