#include "profile.h"

#include <regex>

#include "arguments.h"
#include "dtrun/abi.h"

namespace dtrun::conformance::tool {
namespace {

// Cases that need nothing but sends and receives.
const char kMessages[] =
    "(Load|Structs|Messages)\\..*|Plugin\\.(?!OffersCollectives).*|Capabilities\\.MakeSense|Requests\\."
    "OfMessages.*|"
    "Failures\\.(NameARankThatDoesNotCome|EndAMessageThatNobodyAnswers)|Abort\\.EndsWhatIsBlocked";

}  // namespace

std::string ProfileFor(std::int32_t kind, const std::string& wanted) {
  const bool launcher = kind == DTRUN_KIND_LAUNCHER;
  if (wanted.empty()) return launcher ? "launcher" : "host-collectives";
  if (wanted == "device-collectives") {
    throw UsageError(
        "'--profile' is 'device-collectives', which is not there yet; try messages or host-collectives");
  }
  if (wanted != "messages" && wanted != "host-collectives" && wanted != "launcher") {
    throw UsageError("'--profile' is '" + wanted + "', must be messages, host-collectives or launcher");
  }
  if ((wanted == "launcher") != launcher) {
    throw UsageError("'--profile' is '" + wanted + "', and the plugin is a " +
                     (launcher ? "launcher, whose profile is launcher"
                               : "backend, whose profiles are messages and host-collectives"));
  }
  return wanted;
}

bool InProfile(const std::string& profile, const std::string& name) {
  static const std::regex kPattern(kMessages);
  return profile != "messages" || std::regex_match(name, kPattern);
}

}  // namespace dtrun::conformance::tool
