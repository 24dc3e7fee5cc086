#include <algorithm>
#include <nlohmann/json.hpp>

#include "launchers/schedulers/reading.h"

namespace dtrun::schedulers {
namespace {

using Json = nlohmann::json;

Json Parse(const std::string& text) { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }

std::optional<std::vector<std::string>> Strings(const Json& list) {
  const auto is_string = [](const Json& one) { return one.is_string(); };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_string)) return std::nullopt;
  return list.get<std::vector<std::string>>();
}

}  // namespace

std::optional<std::vector<std::string>> ReadHostList(const std::string& text) { return Strings(Parse(text)); }

std::optional<ResourceConfig> ReadResourceConfig(const std::string& text) {
  const Json config = Parse(text);
  if (!config.is_object() || !config.contains("hosts") || !config.contains("current_host"))
    return std::nullopt;
  const auto hosts = Strings(config["hosts"]);
  if (!hosts || !config["current_host"].is_string()) return std::nullopt;
  return ResourceConfig{config["current_host"].get<std::string>(), *hosts};
}

}  // namespace dtrun::schedulers
