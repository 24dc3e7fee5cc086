// The user's runs: a folder of links to run folders, one for each run, in the user's state folder.
//
// Private to the user. Written by the root when its run folder exists, read by the verbs that find runs; any
// thread. Best effort: where the folder cannot be written or belongs to another user, there is no registry,
// and the job is not told.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun::job {

// "~/.local/state/dtrun" (XDG Base Directory specification); empty: the environment names no absolute folder.
std::filesystem::path StateFolder();

inline constexpr std::size_t kMostRegistered = 1000;

struct RegisteredRun {
  using Time = std::chrono::system_clock::time_point;
  std::filesystem::path link;
  std::filesystem::path folder;  // of the run
  std::string job;
  Time began;
  pid_t pid = 0;  // of the job's dtrun
};

// Links to `run`, an absolute path, and removes the oldest links beyond kMostRegistered. Looks at no run, so
// that a file system that does not answer stops no job.
void Register(const std::filesystem::path& run, const std::string& job, RegisteredRun::Time now);

// Whether a dtrun of its pid runs: the job's own, unless the pid has been used again.
bool MayRun(const RegisteredRun& run);

// The runs that were started on this host, newest first, each folder once. Removes links to folders that are
// gone, but for runs that MayRun.
std::vector<RegisteredRun> RegisteredRuns();

// What a link's name tells: "20261128-211507.042-JOB-4711@HOST". Nullopt: it is no such name, or of another
// host. `link` and `folder` are left empty.
std::optional<RegisteredRun> ReadLinkName(std::string_view name, std::string_view host);

}  // namespace dtrun::job
