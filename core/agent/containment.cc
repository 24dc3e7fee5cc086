#include "core/agent/containment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <csignal>

#include "core/agent/process.h"
#include "core/plan/hosts.h"

namespace dtrun::agent {
namespace {

// How long SIGKILL may take, for example while a driver frees a device's memory.

}  // namespace

Status Containment::Begin(std::uint64_t memory) {
  cgroup_.reset();
  segments_.emplace();
  memory_ = memory;
  if (name_.empty() && memory == 0) return {};
  if (!parent_) {
    if (memory == 0) return {};
    return Error{
        DTRUN_UNSUPPORTED,
        fmt::format("job.memory cannot be kept: {}; unset it, or boot with cgroup v2", parent_.error().text)};
  }
  auto made = Cgroup::Make(*parent_, name_, memory);
  if (made) {
    cgroup_ = *std::move(made);
  } else if (memory != 0) {
    return made.error();
  }
  return {};  // without a group they are swept
}

MemoryEvidence Containment::Memory() const {
  return cgroup_ ? MemoryEvidence("/", cgroup_->memory_events()) : MemoryEvidence();
}

std::string Containment::MemoryText() const {
  const auto peak = cgroup_ ? cgroup_->MemoryPeak() : std::nullopt;
  if (!peak) return {};
  constexpr double kGiB = 1 << 30;
  std::string text = fmt::format("the ranks on {} held {:.2f} GiB of memory at most", plan::HostName(),
                                 static_cast<double>(*peak) / kGiB);
  if (memory_ != 0) text += fmt::format(", job.memory is {:.2f} GiB", static_cast<double>(memory_) / kGiB);
  return text;
}

void Containment::LookForSegments() {
  if (!segments_) return;
  segments_->Look([this] {
    std::vector<pid_t> pids;
    for (const Process& process : Descendants(::getpid(), spared_())) pids.push_back(process.pid);
    return pids;
  });
}

void Containment::Kill() {
  if (cgroup_) cgroup_->Kill();
  SignalDescendants(SIGKILL, spared_());
}

std::vector<std::string> Containment::End() {
  LookForSegments();
  if (cgroup_) cgroup_->Kill();
  std::vector<std::string> lines;
  for (const Process& process : KillDescendants(kKillPatience, spared_()))
    lines.push_back(WhyItStays(process));
  cgroup_.reset();
  const std::vector<std::string> removed = segments_ ? segments_->Remove() : std::vector<std::string>();
  if (!removed.empty()) {
    lines.push_back(fmt::format("removed from /dev/shm on {} what the ranks left there: {}", plan::HostName(),
                                fmt::join(removed, ", ")));
  }
  return lines;
}

}  // namespace dtrun::agent
