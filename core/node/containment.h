// What keeps the processes of one generation on this host together, and ends them to the last: a cgroup where
// one may be made, a sweep of the processes below this one, and what they left in /dev/shm.
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

#include "core/base/asio.h"
#include "core/process/cgroup.h"
#include "core/process/memory_evidence.h"
#include "core/process/process.h"
#include "core/process/segments.h"

namespace dtrun::node {

class Containment {
 public:
  // `cgroup`: its name, like a runtime folder's; empty: none is made. `spared`: children that are not the
  // job's.
  Containment(boost::asio::io_context& loop, std::string cgroup, std::function<std::vector<pid_t>()> spared)
      : name_(std::move(cgroup)), spared_(std::move(spared)), segments_pause_(loop), segments_appear_(loop) {}
  ~Containment() { *ended_ = true; }
  Containment(const Containment&) = delete;
  Containment& operator=(const Containment&) = delete;

  // Before processes are started. `memory`: what they may hold together, in bytes; 0: no limit. Fails only
  // when that cannot be kept.
  Status Begin(std::uint64_t memory);
  // For SpawnRequest; -1: none.
  int cgroup() const { return cgroup_ ? cgroup_->descriptor() : -1; }
  bool cgroup_required() const { return memory_ != 0; }
  process::MemoryEvidence Memory() const;
  // Whether that evidence is of this job alone.
  bool CountsMemory() const { return cgroup_ && cgroup_->MemoryPeak(); }
  // "the ranks on node1 held 16281MiB of memory at most, job.memory is 16GiB"; empty when nobody
  // counted.
  std::string MemoryText() const;

  // Before any process is signalled to end.
  void LookForSegments();
  // Whether torch's manager may have some of them to remove.
  bool SegmentsWait() const { return segments_ && segments_->TorchsWait(); }
  // SIGKILL to all, without waiting. `ranks`: that ran, each of them the leader of its group.
  void Kill(const std::vector<pid_t>& ranks);
  // Returns when nothing runs any more, with lines for the user about what was still there although no signal
  // to a rank reached it, what could not be ended, and what was removed.
  // `ranks`: that ran; `told`: processes that were already reported.
  std::vector<std::string> End(const std::vector<pid_t>& ranks = {}, const std::vector<pid_t>& told = {});

 private:
  std::vector<pid_t> Processes() const;
  void AwaitSegments(std::chrono::nanoseconds pause);
  void NoteSegments();
  void NoteStrays(const std::function<bool(const process::Process&)>& known);

  const std::string name_;
  bool killed_ = false;  // this generation
  std::string strays_;   // "30 processes (28 python3, 2 sh)"; empty: none
  const std::function<std::vector<pid_t>()> spared_;
  const Result<std::filesystem::path> parent_ = process::OwnCgroup();
  std::uint64_t memory_ = 0;
  std::unique_ptr<process::Cgroup> cgroup_;  // of the generation that began last
  std::optional<process::Segments> segments_;
  boost::asio::steady_timer segments_pause_;
  boost::asio::posix::stream_descriptor segments_appear_;
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for a timer that is due already
};

}  // namespace dtrun::node
