#include "core/options/snapshot.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/json.h"

using dtrun::options::Data;
using dtrun::options::Type;
using Texts = std::vector<std::string>;
using TextMap = std::map<std::string, std::string>;

namespace {

void Link(dtrun_options::Entry& entry) {
  entry.items.clear();
  if (const auto* list = std::get_if<Texts>(&entry.value.data)) {
    for (const std::string& item : *list) entry.items.push_back({item.c_str(), item.size()});
  }
}

}  // namespace

dtrun_options::dtrun_options(const dtrun_options& other) : entries(other.entries) {
  for (auto& [key, entry] : entries) Link(entry);
}

dtrun_options& dtrun_options::operator=(dtrun_options other) noexcept {
  entries.swap(other.entries);
  return *this;
}

void dtrun_options::Set(dtrun::options::Spec spec, dtrun::options::Value value) {
  Entry& entry = entries[spec.key];
  entry.spec = std::move(spec);
  entry.value = std::move(value);
  Link(entry);
}

namespace dtrun::options {
namespace {

Json DataToJson(const Data& data) {
  if (const auto* flag = std::get_if<bool>(&data)) return *flag;
  if (const auto* number = std::get_if<std::int64_t>(&data)) return *number;
  if (const auto* real = std::get_if<double>(&data)) return *real;
  if (const auto* text = std::get_if<std::string>(&data)) return *text;
  if (const auto* list = std::get_if<Texts>(&data)) return *list;
  if (const auto* map = std::get_if<TextMap>(&data)) return *map;
  return nullptr;
}

Error Malformed(std::string_view what) {
  return Error::Of(DTRUN_INVALID_ARGUMENT, "options snapshot: {}", what);
}

bool IsTexts(const Json& json) {
  return json.is_array() && std::ranges::all_of(json, [](const Json& item) { return item.is_string(); });
}

Result<Data> DataFromJson(Type type, const Json& json) {
  if (json.is_null()) return Data();
  switch (type) {
    case Type::kBool:
      if (json.is_boolean()) return Data(json.get<bool>());
      break;
    case Type::kInt:
    case Type::kUint:
    case Type::kBytes:
    case Type::kDuration:
      if (json.is_number_integer()) return Data(json.get<std::int64_t>());
      break;
    case Type::kFloat:
      if (json.is_number()) return Data(json.get<double>());
      break;
    case Type::kString:
    case Type::kEnum:
    case Type::kPath:
      if (json.is_string()) return Data(json.get<std::string>());
      break;
    case Type::kCount:
      if (json.is_number_integer()) return Data(json.get<std::int64_t>());
      if (json.is_string()) return Data(json.get<std::string>());
      break;
    case Type::kNames:
      if (json.is_string()) return Data(json.get<std::string>());
      [[fallthrough]];
    case Type::kList:
    case Type::kPathList:
      if (IsTexts(json)) return Data(json.get<Texts>());
      break;
    case Type::kMap: {
      if (!json.is_object()) break;
      TextMap map;
      for (const auto& [name, text] : json.items()) {
        if (!text.is_string()) return Malformed("a table holds something that is not a string");
        map[name] = text.get<std::string>();
      }
      return Data(std::move(map));
    }
  }
  return Malformed(fmt::format("a value of type {} is {}", static_cast<int>(type), json.type_name()));
}

// Null if the member is missing, so that its type check fails.
const Json& Member(const Json& object, const char* name) {
  static const Json kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

bool KnownType(std::int64_t type) {
  return (type >= DTRUN_TYPE_BOOL && type <= DTRUN_TYPE_LIST) ||
         (type >= static_cast<int>(Type::kMap) && type <= static_cast<int>(Type::kNames));
}

Result<dtrun_options::Entry> EntryFromJson(const std::string& key, const Json& json) {
  const Json& type = Member(json, "type");
  const Json& origin = Member(json, "origin");
  const Json& place = Member(json, "place");
  if (!type.is_number_integer() || !KnownType(type.get<std::int64_t>())) {
    return Malformed(fmt::format("option '{}' has no known type", key));
  }
  if (!origin.is_number_integer() || !place.is_string()) {
    return Malformed(fmt::format("option '{}' has no origin", key));
  }
  dtrun_options::Entry entry;
  entry.spec.key = key;
  entry.spec.type = static_cast<Type>(type.get<int>());
  if (const Json& scope = Member(json, "scope"); scope.is_number_integer())
    entry.spec.scope = scope.get<int>();
  if (const Json& choices = Member(json, "choices"); IsTexts(choices))
    entry.spec.choices = choices.get<Texts>();
  if (const Json& secret = Member(json, "secret"); secret.is_boolean())
    entry.spec.secret = secret.get<bool>();
  Result<Data> data = DataFromJson(entry.spec.type, Member(json, "value"));
  if (!data) return data.error();
  entry.value = Value{*std::move(data), Origin{origin.get<int>(), place.get<std::string>()}};
  return entry;
}

Json RootOf(const dtrun_options& options) {
  Json root = Json::object();
  for (const auto& [key, entry] : options.entries) {
    Json& json = root[key];
    json["type"] = static_cast<int>(entry.spec.type);
    json["scope"] = entry.spec.scope;
    if (!entry.spec.choices.empty()) json["choices"] = entry.spec.choices;
    if (entry.spec.secret) json["secret"] = true;
    json["value"] = DataToJson(entry.value.data);
    json["origin"] = entry.value.origin.kind;
    json["place"] = entry.value.origin.place;
    if (const auto& wrapped = entry.wrapped) {
      json["wrapped"] = {{"name", wrapped->name},
                         {"path", wrapped->path},
                         {"id", wrapped->id},
                         {"options", RootOf(wrapped->options)}};
    }
  }
  return root;
}

Result<dtrun_options> FromRoot(const Json& root);

Result<std::shared_ptr<const dtrun_options::Wrapped>> WrappedFromJson(const std::string& key,
                                                                      const Json& json) {
  dtrun_options::Wrapped wrapped;
  for (const auto& [name, text] :
       {std::pair("name", &wrapped.name), std::pair("path", &wrapped.path), std::pair("id", &wrapped.id)}) {
    const Json& given = json.is_object() ? Member(json, name) : json;
    if (!given.is_string()) return Malformed(fmt::format("the backend of option '{}' has no {}", key, name));
    *text = given.get<std::string>();
  }
  Result<dtrun_options> options = FromRoot(Member(json, "options"));
  if (!options) return std::move(options).error();
  wrapped.options = *std::move(options);
  return std::make_shared<const dtrun_options::Wrapped>(std::move(wrapped));
}

Result<dtrun_options> FromRoot(const Json& root) {
  if (!root.is_object()) return Malformed(fmt::format("expected an object; found {}", root.type_name()));
  dtrun_options options;
  for (const auto& [key, json] : root.items()) {
    Result<dtrun_options::Entry> entry = EntryFromJson(key, json);
    if (!entry) return entry.error();
    options.Set(std::move(entry->spec), std::move(entry->value));
    const Json& wrapped = Member(json, "wrapped");
    if (wrapped.is_null()) continue;
    auto below = WrappedFromJson(key, wrapped);
    if (!below) return std::move(below).error();
    options.entries[key].wrapped = *std::move(below);
  }
  return options;
}

}  // namespace

std::string ToJson(const dtrun_options& options) { return JsonLine(RootOf(options)); }

Result<dtrun_options> FromJson(std::string_view text) {
  const Json root = ParseJson(text);
  if (root.is_discarded()) return Malformed("not JSON");
  return FromRoot(root);
}

constexpr std::string_view kStandsOn = " > ";

std::string StackText(const std::string& name, const dtrun_options& options) {
  std::string below;
  int count = 0;
  for (const auto& [key, entry] : options.entries) {
    if (entry.wrapped == nullptr) continue;
    below += (count++ == 0 ? "" : " + ") + StackText(entry.wrapped->name, entry.wrapped->options);
  }
  if (count == 0) return name;
  return fmt::format("{}{}{}", name, kStandsOn, count == 1 ? below : "(" + below + ")");
}

std::string_view LowestOf(std::string_view stack) {
  const std::size_t last = stack.rfind(kStandsOn);
  return last == stack.npos ? stack : stack.substr(last + kStandsOn.size());
}

Result<dtrun_options> DefaultsOf(const Schema& schema, std::string_view prefix) {
  dtrun_options all;
  for (const Spec& spec : schema) {
    Spec own = spec;
    own.key.erase(0, prefix.size());
    Value value;
    if (spec.default_text) {
      auto data = ParseText(spec, *spec.default_text, "/");
      if (!data) return data.error();
      value.data = *std::move(data);
    }
    all.Set(std::move(own), std::move(value));
  }
  return all;
}

}  // namespace dtrun::options
