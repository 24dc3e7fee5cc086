// Converts the config's [restart] and [watch] for the root, and its network.interface for this host. Any
// thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/job/restart.h"
#include "core/observe/stall_watch.h"
#include "core/spec/job_spec.h"

namespace dtrun::launch {

// Errors name the place of an unknown class.
Result<job::RestartPolicy> RestartPolicyOf(const spec::JobSpec& spec);

// Errors name the place of a limit that is not a duration.
Result<observe::StallPolicy> StallPolicyOf(const spec::JobSpec& spec);

// Values that are wrong on every host but that a spec cannot reject, each with its place. `spec` may have
// other problems.
std::vector<Error> WrongValues(const spec::JobSpec& spec);

// Checks that this host has the interfaces named for a job on it alone. Does not query other hosts.
Status CheckInterface(const spec::JobSpec& spec);

// The file id (core/plugin/file_id.h) that the config pins for a plugin file; empty: any. Of several pins,
// the one that matches the file, or the first.
std::string PinOf(const spec::AnyField& pins, const std::filesystem::path& file);

}  // namespace dtrun::launch
