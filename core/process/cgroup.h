// A control group (cgroup v2) that holds the ranks of this host and all their descendants for one generation.
// They are killed, measured and limited as one.
//
// It is made below dtrun's own group, where the user may do so: as root, in a delegated group, or in a
// systemd scope of the user. The local host owns it; loop thread. Its folder is locked while the object
// lives, which distinguishes a group in use from one left by a killed dtrun. Why:
// docs/decisions/017-containment.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::process {

// The folder of this process's own group. `root` is the directory that contains /proc. Fails where cgroup v2
// is not mounted.
Result<std::filesystem::path> OwnCgroup(const std::filesystem::path& root = "/");

class Cgroup {
 public:
  // Creates the group `name` in `parent`, the group of this process. `memory_limit` is in bytes; 0: none. The
  // error says why the group cannot be made, and for a limit also what to do.
  static Result<std::unique_ptr<Cgroup>> Make(const std::filesystem::path& parent, const std::string& name,
                                              std::uint64_t memory_limit);
  // Kills the processes in it and removes it.
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  // The folder's descriptor, with which core/process/spawn.h starts a process in this group.
  int descriptor() const { return folder_.get(); }
  // Sends SIGKILL to every process in it, including those that are just being forked. Does not wait.
  void Kill() const;
  // This file has a line "oom_kill N". It is missing where the group has no memory accounting.
  std::filesystem::path memory_events() const { return path_ / "memory.events"; }
  // Peak memory of the group in bytes, if known.
  std::optional<std::uint64_t> MemoryPeak() const;

 private:
  Cgroup(std::filesystem::path path, UniqueFd folder) : path_(std::move(path)), folder_(std::move(folder)) {}

  std::filesystem::path path_;
  UniqueFd folder_;  // locked
};

// Kills the processes that a killed dtrun left in group `name` of `parent`, and removes the group. Does
// nothing if there is none.
void RemoveCgroup(const std::filesystem::path& parent, const std::string& name);

// Removes groups of this user in `parent` that have the name of a runtime folder and no running dtrun.
void RemoveStaleCgroups(const std::filesystem::path& parent);

}  // namespace dtrun::process
