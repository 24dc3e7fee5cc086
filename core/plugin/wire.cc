#include "core/plugin/wire.h"

#include <fmt/format.h>

#include "core/base/json.h"

namespace dtrun::plugin::wire {
namespace {

// Plugins may hold texts that are not UTF-8; those bytes are replaced.
Json OptionalText(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

std::optional<std::string> ReadOptionalText(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return json.get<std::string>();
}

Json FromSpec(const options::Spec& spec) {
  return {{"key", spec.key},
          {"type", static_cast<int>(spec.type)},
          {"scope", spec.scope},
          {"default_text", OptionalText(spec.default_text)},
          {"doc", spec.doc},
          {"long_doc", spec.long_doc},
          {"unit", spec.unit},
          {"min_text", OptionalText(spec.min_text)},
          {"max_text", OptionalText(spec.max_text)},
          {"choices", spec.choices},
          {"since", spec.since},
          {"env_alias", spec.env_alias},
          {"replaced_by", spec.replaced_by},
          {"reader", spec.reader},
          {"required", spec.required},
          {"experimental", spec.experimental},
          {"secret", spec.secret},
          {"must_exist", spec.must_exist}};
}

options::Spec ToSpec(const Json& json) {
  options::Spec spec;
  spec.key = json.at("key");
  spec.type = static_cast<options::Type>(json.at("type").get<int>());
  spec.scope = json.at("scope");
  spec.default_text = ReadOptionalText(json.at("default_text"));
  spec.doc = json.at("doc");
  spec.long_doc = json.at("long_doc");
  spec.unit = json.at("unit");
  spec.min_text = ReadOptionalText(json.at("min_text"));
  spec.max_text = ReadOptionalText(json.at("max_text"));
  spec.choices = json.at("choices").get<std::vector<std::string>>();
  spec.since = json.at("since");
  spec.env_alias = json.at("env_alias");
  spec.replaced_by = json.at("replaced_by");
  spec.reader = json.at("reader");
  spec.required = json.at("required");
  spec.experimental = json.at("experimental");
  spec.secret = json.at("secret");
  spec.must_exist = json.at("must_exist");
  return spec;
}

// Parses `line` and hands the object under `key` to `read`; json's exceptions end here.
template <class T, class Read>
Result<T> Decode(std::string_view line, const char* key, Read&& read) {
  try {
    const Json json = ParseJson(line);
    if (json.contains("error")) {
      const Json& error = json.at("error");
      return Error{error.at("code").get<dtrun_status>(), error.at("text").get<std::string>(),
                   error.at("peer").get<int>()};
    }
    return read(json.at(key));
  } catch (const Json::exception& error) {
    return Error{DTRUN_INTERNAL, fmt::format("a plugin probe sent what is no answer: {}", error.what())};
  }
}

}  // namespace

std::string Encode(const Error& error) {
  return JsonLine(Json{{"error", {{"code", error.code}, {"text", error.text}, {"peer", error.peer}}}});
}

std::string Encode(const Description& description) {
  Json options = Json::array();
  for (const options::Spec& spec : description.options) options.push_back(FromSpec(spec));
  return JsonLine(Json{{"description",
                        {{"name", description.file.name},
                         {"version", description.version},
                         {"vendor", description.vendor},
                         {"license", description.license},
                         {"summary", description.summary},
                         {"abi", description.abi},
                         {"options", options}}}});
}

std::string Encode(const LaunchInfo& info) {
  return JsonLine(Json{{"launch_info", {{"facts", info.facts}, {"env", info.env}}}});
}

std::string Encode(const LaunchRequest& request) {
  return JsonLine(Json{{"launch",
                        {{"options", request.options},
                         {"host_count", request.host_count},
                         {"local_ranks", request.local_ranks}}}});
}

Result<Description> DecodeDescription(std::string_view line) {
  return Decode<Description>(line, "description", [](const Json& json) {
    Description description;
    description.file.name = json.at("name");
    description.version = json.at("version");
    description.vendor = json.at("vendor");
    description.license = json.at("license");
    description.summary = json.at("summary");
    description.abi = json.at("abi");
    for (const Json& spec : json.at("options")) description.options.push_back(ToSpec(spec));
    return description;
  });
}

Result<LaunchInfo> DecodeLaunchInfo(std::string_view line) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  return Decode<LaunchInfo>(line, "launch_info", [](const Json& json) {
    return LaunchInfo{json.at("facts").get<Pairs>(), json.at("env").get<Pairs>()};
  });
}

Result<LaunchRequest> DecodeLaunchRequest(std::string_view line) {
  return Decode<LaunchRequest>(line, "launch", [](const Json& json) {
    return LaunchRequest{json.at("options"), json.at("host_count"), json.at("local_ranks")};
  });
}

}  // namespace dtrun::plugin::wire
