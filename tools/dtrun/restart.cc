#include "tools/dtrun/restart.h"

#include <fmt/format.h>

#include <string>

namespace dtrun::cli {

Result<job::RestartPolicy> RestartPolicyOf(const config::Settings& settings) {
  job::RestartPolicy policy;
  policy.max = static_cast<int>(settings.Int("restart.max"));
  policy.backoff = settings.Duration("restart.backoff");
  for (const std::string& word : settings.List("restart.on")) {
    const auto exit_class = verdict::ClassNamed(word);
    if (!exit_class) {
      const std::string& place = settings.Get("restart.on").origin.place;
      return Error{DTRUN_INVALID_ARGUMENT,
                   fmt::format("{}{}restart.on lists '{}'; expected some of user-error, signal, "
                               "out-of-memory, rendezvous, network, hang, launcher",
                               place, place.empty() ? "" : ": ", word)};
    }
    policy.on.insert(*exit_class);
  }
  return policy;
}

}  // namespace dtrun::cli
