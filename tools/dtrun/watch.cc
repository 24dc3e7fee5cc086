#include "tools/dtrun/watch.h"

#include <fmt/format.h>

#include "core/base/units.h"

namespace dtrun::cli {

Result<agent::StallPolicy> StallPolicyOf(const config::Settings& settings) {
  constexpr std::chrono::seconds kShortest{1};
  agent::StallPolicy policy;
  policy.fails = settings.Text("watch.on_stall") == "fail";
  const std::string& text = settings.Text("watch.stall");
  if (text == "off") return policy;
  const Result<Nanoseconds> after = ParseDuration(text);
  if (!after || *after < kShortest) {
    const std::string& place = settings.Get("watch.stall").origin.place;
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("{}{}watch.stall is '{}'; expected \"off\" or a duration of 1s or more, such as \"10m\"",
                    place, place.empty() ? "" : ": ", text)};
  }
  policy.after = *after;
  return policy;
}

}  // namespace dtrun::cli
