#include "core/launch/watch.h"

#include <fmt/format.h>

#include "core/base/units.h"
#include "core/plan/at.h"

namespace dtrun::launch {

Result<job::StallPolicy> StallPolicyOf(const config::Settings& settings) {
  constexpr std::chrono::seconds kShortest{1};
  job::StallPolicy policy;
  policy.fails = settings.Text("watch.on_stall") == "fail";
  const std::string& text = settings.Text("watch.stall");
  if (text == "off") return policy;
  const Result<Nanoseconds> after = ParseDuration(text);
  if (!after || *after < kShortest) {
    Error error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("expected \"off\" or a duration from 1s to 10 years, such as \"10m\"; found '{}'", text)};
    const Result<Nanoseconds> seconds = ParseDuration(text + "s");
    if (!after && seconds && *seconds >= kShortest)
      error.text += fmt::format(", did you mean \"{}s\"?", text);
    return plan::At(settings, "watch.stall", error);
  }
  policy.after = *after;
  return policy;
}

}  // namespace dtrun::launch
