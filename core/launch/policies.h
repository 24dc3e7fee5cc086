// Converts the config's [restart] and [watch] for the root, and its network.interface for this host. Any
// thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/settings.h"
#include "core/job/restart.h"
#include "core/job/stall_watch.h"

namespace dtrun::launch {

// Errors name the place of an unknown class.
Result<job::RestartPolicy> RestartPolicyOf(const config::Settings& settings);

// Errors name the place of a limit that is not a duration.
Result<job::StallPolicy> StallPolicyOf(const config::Settings& settings);

// Values that are wrong on every host but that a spec cannot reject, each with its place. `settings` may have
// other problems.
std::vector<Error> WrongValues(const config::Settings& settings);

// Checks that this host has the interfaces named for a job on it alone. Does not query other hosts.
Status CheckInterface(const config::Settings& settings);

// The file id (core/plugin/file_id.h) that the config pins for a plugin file; empty: any. Of several pins,
// the one that matches the file, or the first. `kind`: "backend" or "launcher".
std::string PinOf(const config::Settings& settings, std::string_view kind, const std::filesystem::path& file);

}  // namespace dtrun::launch
