// Keeps the processes of one generation on this host together and ends all of them: with a cgroup where
// possible, a sweep of this process's descendants, and the removal of their segments in /dev/shm.
//
// Owned by the local host; loop thread. REQUIRES: this process is a child subreaper.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/timer.h"
#include "core/process/cgroup.h"
#include "core/process/ending.h"
#include "core/process/memory_evidence.h"
#include "core/process/process.h"
#include "core/process/segments.h"

namespace dtrun::node {

class Containment {
 public:
  // `cgroup`: its name, like a runtime folder's; empty: none is made. `spared`: children that are not part of
  // the job.
  Containment(asio::io_context& loop, std::string cgroup, std::function<std::vector<pid_t>()> spared)
      : name_(std::move(cgroup)), spared_(std::move(spared)), segments_pause_(loop), segments_appear_(loop) {}
  ~Containment() { *ended_ = true; }
  Containment(const Containment&) = delete;
  Containment& operator=(const Containment&) = delete;

  // Call before processes are started. `memory`: limit for all of them together, in bytes; 0: no limit. Fails
  // only if the limit cannot be enforced.
  Status Begin(std::uint64_t memory);
  // For SpawnRequest; -1: none.
  int cgroup() const { return cgroup_ ? cgroup_->descriptor() : -1; }
  bool cgroup_required() const { return memory_ != 0; }
  // Call before the ranks start.
  void WatchMemory();
  // Whether the kernel has killed a process since then because memory ran out.
  bool RanOutOfMemory() const { return evidence_ && evidence_->Rose(); }
  // Lines for the user about memory at the end of a rank. The kernel may have killed a process that the rank
  // had started instead of the rank: that is told once.
  std::vector<std::string> MemoryLines(const process::Ending& ending);

  // Call before any process is signalled to end.
  void LookForSegments();
  // Whether torch's manager may have some of them to remove.
  bool SegmentsWait() const { return segments_ && segments_->TorchsWait(); }
  // Sends SIGKILL to all without waiting. `ranks`: the ranks that ran, each the leader of its process group.
  void Kill(const std::vector<pid_t>& ranks);
  // Returns when nothing runs any more. The lines for the user say what still ran although no signal to a
  // rank had reached it, what could not be ended, and what was removed. `ranks`: that ran; `told`: processes
  // already reported.
  std::vector<std::string> End(const std::vector<pid_t>& ranks = {}, const std::vector<pid_t>& told = {});

 private:
  // "the ranks on node1 held 16281MiB of memory at most, job.memory is 16GiB". Empty if memory was not
  // measured.
  std::string MemoryText() const;
  std::vector<pid_t> Processes() const;
  void AwaitSegments(std::chrono::nanoseconds pause);
  void NoteSegments();
  void NoteStrays(const std::function<bool(const process::Process&)>& known);

  const std::string name_;
  bool killed_ = false;  // in this generation
  std::string strays_;   // "30 processes (28 python3, 2 sh)"; empty: none
  const std::function<std::vector<pid_t>()> spared_;
  const Result<std::filesystem::path> parent_ = process::OwnCgroup();
  std::uint64_t memory_ = 0;
  std::unique_ptr<process::Cgroup> cgroup_;          // of the latest generation
  std::optional<process::MemoryEvidence> evidence_;  // the same
  bool told_of_memory_ = false;
  std::optional<process::Segments> segments_;
  Timer segments_pause_;
  asio::posix::stream_descriptor segments_appear_;
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for a queued handler
};

}  // namespace dtrun::node
