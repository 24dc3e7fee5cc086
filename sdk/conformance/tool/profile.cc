#include "profile.h"

#include <regex>

#include "arguments.h"
#include "dtrun/abi.h"

namespace dtrun::conformance::tool {
namespace {

// Cases that need nothing but sends and receives.
const char kMessages[] =
    "(Load|Structs|Messages)\\..*|Plugin\\.(?!OffersCollectives).*|Capabilities\\.(MakeSense|AreKnown|"
    "StayTheSame)|Requests\\."
    "OfMessages.*|"
    "Failures\\.(NameARankThatDoesNotCome|EndAMessageThatNobodyAnswers|WriteNothing.*)|Faults\\.("
    "NameARankThatDies|EndAMessage|LeaveTheOthers).*|Abort\\.EndsWhatIsBlocked";

}  // namespace

std::string ProfileFor(std::int32_t kind, const std::string& wanted) {
  const bool backend = kind == DTRUN_KIND_BACKEND;
  const std::string only = kind == DTRUN_KIND_LAUNCHER ? "launcher" : "devices";  // of what is no backend
  if (wanted.empty()) return backend ? "host-collectives" : only;
  if (wanted == "device-collectives") {
    throw UsageError(
        "'--profile' is 'device-collectives', which is not there yet; try messages or host-collectives");
  }
  const bool of_backends = wanted == "messages" || wanted == "host-collectives";
  if (!of_backends && wanted != "launcher" && wanted != "devices") {
    throw UsageError("'--profile' is '" + wanted +
                     "', must be messages, host-collectives, launcher or devices");
  }
  if (backend && !of_backends) {
    throw UsageError("'--profile' is '" + wanted +
                     "', and the plugin is a backend, with the profiles messages and host-collectives");
  }
  if (!backend && wanted != only) {
    throw UsageError("'--profile' is '" + wanted + "', and the plugin is a " +
                     (only == "launcher" ? "launcher" : "device") + ", with the profile " + only);
  }
  return wanted;
}

bool InProfile(const std::string& profile, const std::string& name) {
  static const std::regex kPattern(kMessages);
  return profile != "messages" || std::regex_match(name, kPattern);
}

}  // namespace dtrun::conformance::tool
