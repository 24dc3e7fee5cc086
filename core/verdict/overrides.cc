#include "core/verdict/overrides.h"

#include <fmt/format.h>

namespace dtrun::verdict {

std::map<std::string, std::string> RendezvousVariables(const ProcessVariables& environment) {
  std::map<std::string, std::string> found;
  for (const char* const name : {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"}) {
    if (const auto at = environment.find(name); at != environment.end()) found.insert(*at);
  }
  return found;
}

std::vector<Override> OverridesOf(int rank, const std::map<std::string, std::string>& given,
                                  const std::map<std::string, std::string>& now) {
  std::vector<Override> overrides;
  for (const auto& [name, value] : given) {
    const auto at = now.find(name);
    if (at != now.end() && at->second != value) overrides.push_back({rank, name, value, at->second});
  }
  return overrides;
}

std::string OverridesText(const std::vector<Override>& overrides) {
  std::string text;
  for (const Override& one : overrides) {
    text += fmt::format("{}{} to {}, where dtrun set {}", text.empty() ? "" : "; ", one.name,
                        one.now.empty() ? "nothing" : one.now, one.given);
  }
  return text;
}

}  // namespace dtrun::verdict
