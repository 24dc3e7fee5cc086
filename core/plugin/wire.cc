#include "core/plugin/wire.h"

#include "core/base/json.h"
#include "core/plugin/decode.h"

namespace dtrun::plugin::wire {
namespace {

// Plugins' texts may be invalid UTF-8; invalid bytes are replaced.
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
  json.at("key").get_to(spec.key);
  spec.type = static_cast<options::Type>(json.at("type").get<int>());
  json.at("scope").get_to(spec.scope);
  spec.default_text = ReadOptionalText(json.at("default_text"));
  json.at("doc").get_to(spec.doc);
  json.at("long_doc").get_to(spec.long_doc);
  json.at("unit").get_to(spec.unit);
  spec.min_text = ReadOptionalText(json.at("min_text"));
  spec.max_text = ReadOptionalText(json.at("max_text"));
  spec.choices = json.at("choices").get<std::vector<std::string>>();
  json.at("since").get_to(spec.since);
  json.at("env_alias").get_to(spec.env_alias);
  json.at("replaced_by").get_to(spec.replaced_by);
  json.at("reader").get_to(spec.reader);
  json.at("required").get_to(spec.required);
  json.at("experimental").get_to(spec.experimental);
  json.at("secret").get_to(spec.secret);
  json.at("must_exist").get_to(spec.must_exist);
  return spec;
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
                         {"members", description.members},
                         {"options", options}}}});
}

std::string Encode(const LaunchInfo& info) {
  return JsonLine(
      Json{{"launch_info", {{"facts", info.facts}, {"env", info.env}, {"file_id", info.file_id}}}});
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
    json.at("name").get_to(description.file.name);
    json.at("version").get_to(description.version);
    json.at("vendor").get_to(description.vendor);
    json.at("license").get_to(description.license);
    json.at("summary").get_to(description.summary);
    json.at("abi").get_to(description.abi);
    json.at("members").get_to(description.members);
    for (const Json& spec : json.at("options")) description.options.push_back(ToSpec(spec));
    return description;
  });
}

Result<LaunchInfo> DecodeLaunchInfo(std::string_view line) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  return Decode<LaunchInfo>(line, "launch_info", [](const Json& json) {
    return LaunchInfo{json.at("facts").get<Pairs>(), json.at("env").get<Pairs>(),
                      json.at("file_id").get<std::string>()};
  });
}

Result<LaunchRequest> DecodeLaunchRequest(std::string_view line) {
  return Decode<LaunchRequest>(line, "launch", [](const Json& json) {
    LaunchRequest request;
    json.at("options").get_to(request.options);
    json.at("host_count").get_to(request.host_count);
    json.at("local_ranks").get_to(request.local_ranks);
    return request;
  });
}

}  // namespace dtrun::plugin::wire
