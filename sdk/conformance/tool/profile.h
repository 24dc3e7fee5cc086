// Which cases a profile demands. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace dtrun::conformance::tool {

// The profile to try for a plugin of this kind: `wanted`, or the widest when it is empty. Throws UsageError
// on one that does not exist or is another kind's.
std::string ProfileFor(std::int32_t kind, const std::string& wanted);

// Whether the profile has the case "Suite.Case".
bool InProfile(const std::string& profile, const std::string& name);

}  // namespace dtrun::conformance::tool
