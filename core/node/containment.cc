#include "core/node/containment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <utility>

#include "core/base/number.h"
#include "core/base/text.h"
#include "core/hosts/this_machine.h"
#include "core/plan/hosts.h"
#include "core/process/process.h"

namespace dtrun::node {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kMemoryUnit = 1 << 20;

bool Has(const std::vector<pid_t>& pids, pid_t pid) { return std::ranges::find(pids, pid) != pids.end(); }

// Interval if the kernel does not report new segments.
constexpr std::chrono::milliseconds kSegmentsNotedEvery{200};
// Takes at most a twentieth of the loop's time.
constexpr int kPausePerNote = 20;

constexpr std::size_t kMostNamed = 4;  // programs
constexpr int kMostLooks = 20;

}  // namespace

Status Containment::Begin(std::uint64_t memory) {
  cgroup_.reset();
  segments_.emplace();
  segments_appear_.close();
  error_code none;  // polled a few times a second if it fails
  segments_appear_.assign(::fcntl(segments_->descriptor(), F_DUPFD_CLOEXEC, 0), none);
  AwaitSegments({});
  strays_.clear();
  killed_ = told_of_memory_ = false;
  evidence_.reset();
  memory_ = memory;
  if (name_.empty() && memory == 0) return {};
  if (!parent_) {
    if (memory == 0) return {};
    return Error::Of(DTRUN_UNSUPPORTED, "job.memory cannot be enforced: {}; unset it, or boot with cgroup v2",
                     parent_.error().text);
  }
  auto made = process::Cgroup::Make(*parent_, name_, memory);
  if (made) {
    cgroup_ = *std::move(made);
  } else if (memory != 0) {
    return made.error();
  }
  return {};  // without a group, the sweep ends them
}

void Containment::WatchMemory() {
  evidence_.emplace("/", cgroup_ ? cgroup_->memory_events() : std::filesystem::path());
}

std::vector<std::string> Containment::MemoryLines(const process::Ending& ending) {
  // A counter that covers more than this job proves nothing.
  const bool helper = !ending.out_of_memory && ending.failed() && !told_of_memory_ && cgroup_ &&
                      cgroup_->MemoryPeak() && RanOutOfMemory();
  if (!helper && !ending.out_of_memory) return {};
  told_of_memory_ = true;
  std::vector<std::string> lines;
  if (helper)
    lines.push_back(fmt::format(
        "dtrun: out of memory: the kernel killed a process that ranks on {} had started", hosts::HostName()));
  if (const std::string text = MemoryText(); !text.empty()) lines.push_back("dtrun: " + text);
  return lines;
}

std::string Containment::MemoryText() const {
  const auto peak = cgroup_ ? cgroup_->MemoryPeak() : std::nullopt;
  if (!peak) return {};
  std::string text = fmt::format("the ranks on {} held {} of memory at most", hosts::HostName(),
                                 FormatBytes((*peak + kMemoryUnit - 1) / kMemoryUnit * kMemoryUnit));
  if (memory_ != 0) text += fmt::format(", job.memory is {}", FormatBytes(memory_));
  return text;
}

std::vector<pid_t> Containment::Processes() const {
  std::vector<pid_t> pids;
  for (const process::Process& process : process::Descendants(::getpid(), spared_()))
    pids.push_back(process.pid);
  return pids;
}

void Containment::AwaitSegments(std::chrono::nanoseconds pause) {
  segments_pause_.After(pause, [this] {
    if (!segments_appear_.is_open()) return NoteSegments();
    segments_appear_.async_wait(asio::posix::stream_descriptor::wait_read,
                                [this, ended = ended_](const error_code& closed) {
                                  if (!closed && !*ended) NoteSegments();
                                });
  });
}

void Containment::NoteSegments() {
  if (!segments_) return;
  const auto begin = std::chrono::steady_clock::now();
  segments_->Note([this] { return Processes(); });
  const auto spent = std::chrono::steady_clock::now() - begin;
  const std::chrono::nanoseconds least = segments_appear_.is_open() ? 0ns : kSegmentsNotedEvery;
  AwaitSegments(std::max<std::chrono::nanoseconds>(least, kPausePerNote * spent));
}

void Containment::LookForSegments() {
  if (segments_) segments_->Look([this] { return Processes(); });
}

// Counts the processes by program, most frequent first. A fork chain may be between two links whenever a
// process is read, so that only its zombies are seen; another look finds it. Ranks that wait to be reaped
// count as known; otherwise every end of a job would take all the looks.
void Containment::NoteStrays(const std::function<bool(const process::Process&)>& known) {
  std::map<std::string, int> count_of;
  int count = 0;
  bool zombies = true;
  for (int look = 0; look < kMostLooks && count == 0 && zombies; ++look) {
    zombies = false;
    for (const process::Process& process : process::Descendants(::getpid(), spared_())) {
      if (known(process)) continue;
      zombies = zombies || process.state == 'Z';
      if (process.state == 'Z') continue;
      ++count_of[process.name];
      ++count;
    }
  }
  if (count == 0) return;
  std::vector<std::pair<int, std::string>> programs;
  for (const auto& [name, number] : count_of) programs.emplace_back(-number, Printable(name));
  std::ranges::sort(programs);
  strays_ = fmt::format("{} process{} (", count, count == 1 ? "" : "es");
  for (std::size_t i = 0; i < programs.size() && i < kMostNamed; ++i)
    strays_ += fmt::format("{}{} {}", i == 0 ? "" : ", ", -programs[i].first, programs[i].second);
  strays_ += programs.size() > kMostNamed ? ", …)" : ")";
}

void Containment::Kill(const std::vector<pid_t>& ranks) {
  if (!killed_) NoteStrays([&](const process::Process& process) { return Has(ranks, process.group); });
  killed_ = true;
  if (cgroup_) cgroup_->Kill();
  process::SignalDescendants(SIGKILL, spared_());
}

std::vector<std::string> Containment::End(const std::vector<pid_t>& ranks, const std::vector<pid_t>& told) {
  LookForSegments();
  if (!killed_) {
    NoteStrays([&](const process::Process& process) {
      return Has(ranks, process.pid) || Has(told, process.pid) || Has(told, process.parent);
    });
  }
  if (cgroup_) cgroup_->Kill();
  std::vector<std::string> lines;
  if (!strays_.empty()) {
    lines.push_back(
        fmt::format("killed processes that the ranks left on {}: {}", hosts::HostName(), strays_));
  }
  for (const process::Process& process : process::KillDescendants(process::kKillPatience, spared_()))
    lines.push_back(process::WhyItStays(process));
  cgroup_.reset();
  segments_pause_.Cancel();
  segments_appear_.close();
  const std::vector<std::string> removed = segments_ ? segments_->Remove() : std::vector<std::string>();
  if (!removed.empty()) {
    lines.push_back(fmt::format("removed files that the ranks left in /dev/shm on {}: {}", hosts::HostName(),
                                fmt::join(removed, ", ")));
  }
  return lines;
}

}  // namespace dtrun::node
