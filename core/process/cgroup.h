// A control group (cgroup v2) that holds the ranks of this host and all that they start, for one
// generation: killed as a whole, measured as a whole, limited as a whole.
//
// Made below the group of dtrun itself, where the user may: as root, in a delegated group, in a systemd
// scope of the user. Owned by the local host; loop thread. Whoever holds one holds a lock on its
// folder, so a group whose dtrun was killed can be distinguished from one in use. Why:
// docs/decisions/017-containment.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::process {

// The folder of this process's own group. `root` is where /proc is found. An error where cgroup v2 is not
// mounted.
Result<std::filesystem::path> OwnCgroup(const std::filesystem::path& root = "/");

class Cgroup {
 public:
  // A folder `name` in `parent`, the group of this process. `memory_limit` in bytes; 0: none. The error says
  // why none can be made, and for a limit also what to do.
  static Result<std::unique_ptr<Cgroup>> Make(const std::filesystem::path& parent, const std::string& name,
                                              std::uint64_t memory_limit);
  // Kills what is in it and removes it.
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  // Of its folder; a process is started in it by that (core/process/spawn.h).
  int descriptor() const { return folder_.get(); }
  // Every process in it, also those that are just being forked. Does not wait.
  void Kill() const;
  // Has a line "oom_kill N"; missing where memory is not accounted to the group.
  std::filesystem::path memory_events() const { return path_ / "memory.events"; }
  // The most that it ever held, in bytes, where that is known.
  std::optional<std::uint64_t> MemoryPeak() const;

 private:
  Cgroup(std::filesystem::path path, UniqueFd folder) : path_(std::move(path)), folder_(std::move(folder)) {}

  std::filesystem::path path_;
  UniqueFd folder_;  // locked
};

// What a dtrun that was killed has left in `parent` under `name`: its processes are killed. Nothing when
// there is none.
void RemoveCgroup(const std::filesystem::path& parent, const std::string& name);

// Groups of this user in `parent` whose dtrun is gone, named as runtime folders are.
void RemoveStaleCgroups(const std::filesystem::path& parent);

}  // namespace dtrun::process
