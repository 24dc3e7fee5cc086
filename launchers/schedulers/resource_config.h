// What SageMaker says of a training job's hosts in JSON: SM_HOSTS of the training toolkit, and
// resourceconfig.json ("How Amazon SageMaker Provides Training Information"). Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dtrun::schedulers {

// ["algo-1","algo-2"]. Nothing: the text is not a list of strings in JSON.
std::optional<std::vector<std::string>> ReadHostList(const std::string& text);

struct ResourceConfig {
  std::string current_host;
  std::vector<std::string> hosts;
};
// Members beside these two are passed by. Nothing: the text is not an object in JSON that has both.
std::optional<ResourceConfig> ReadResourceConfig(const std::string& text);

}  // namespace dtrun::schedulers
