// The config's [restart] and [watch] as the root takes them, and its network.interface as this host does. Any
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

// Errors name the place of a class that does not exist.
Result<job::RestartPolicy> RestartPolicyOf(const config::Settings& settings);

// Errors name the place of a limit that is no duration.
Result<job::StallPolicy> StallPolicyOf(const config::Settings& settings);

// The values that those who read them refuse on any host, each with its place: a spec cannot say all of a
// value. `settings` may have other problems.
std::vector<Error> WrongValues(const config::Settings& settings);

// Whether this host has the interfaces that a job on it alone names. What other hosts have is not asked here.
Status CheckInterface(const config::Settings& settings);

// The file id (core/plugin/file_id.h) that the config wants of a plugin file; empty: any. Of several pins the
// one that the file has, or the first. `kind`: "backend" or "launcher".
std::string PinOf(const config::Settings& settings, std::string_view kind, const std::filesystem::path& file);

}  // namespace dtrun::launch
