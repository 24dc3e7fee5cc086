#include "core/launch/environment.h"

#include <unistd.h>

#include <string_view>

#include "core/launch/cluster_key.h"

namespace dtrun::launch {

std::map<std::string, std::string> Environment() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

std::map<std::string, std::string> RankEnvironment() {
  auto environment = Environment();
  environment.erase(kClusterKey);
  return environment;
}

}  // namespace dtrun::launch
