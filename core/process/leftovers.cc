#include "core/process/leftovers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "core/base/text.h"
#include "core/contract/environment.h"

namespace dtrun::process {
namespace {

using Descriptor = asio::posix::stream_descriptor;

constexpr std::size_t kMostProcessesNamed = 8;
constexpr std::string_view kManager = "torch_shm_manag";  // torch_shm_manager; the kernel truncates names

void AskOne(const Process& process) {
  SendSignal(process, SIGTERM);
  SendSignal(process, SIGCONT);  // a stopped process handles SIGTERM only after SIGCONT
}

}  // namespace

Leftovers::Leftovers(asio::io_context& loop, std::map<pid_t, int> rank_of_group, Say say,
                     std::vector<pid_t> spared)
    : loop_(loop),
      timer_(loop),
      rank_of_group_(std::move(rank_of_group)),
      say_(std::move(say)),
      spared_(std::move(spared)) {}

std::string Leftovers::OwnerOf(const Process& process) const {
  if (auto found = rank_of_group_.find(process.group); found != rank_of_group_.end()) {
    return fmt::format("rank {}", found->second);
  }
  const std::string rank = StartEnvironment(process.pid, contract::kRank);
  return rank.empty() ? "the job" : "rank " + rank;
}

void Leftovers::Stop(std::chrono::nanoseconds moment, std::chrono::nanoseconds grace, bool segments_wait,
                     std::function<void()> done) {
  done_ = std::move(done);
  for (Process& process : Descendants(::getpid(), spared_)) {
    if (process.state == 'Z') continue;
    UniqueFd pidfd = Open(process);
    if (!pidfd && errno == ESRCH) continue;  // it has just ended
    auto one = std::make_unique<One>();
    one->owner = OwnerOf(process);
    one->manager = process.name == kManager;
    one->process = std::move(process);
    left_.push_back(std::move(one));
    if (!pidfd) continue;  // not watched: the timer ends the wait for it
    One& last = *left_.back();
    last.ended = std::make_unique<Descriptor>(loop_, pidfd.Release());
    last.ended->async_wait(Descriptor::wait_read, [this, &last, ended = ended_](const error_code& error) {
      if (!error && !*ended) OnEnded(last);
    });
  }
  if (left_.empty()) return Finish();
  const bool managed = std::ranges::any_of(left_, &One::manager);
  if (managed && segments_wait) moment = std::max<std::chrono::nanoseconds>(moment, kMomentOfManager);
  for (const auto& one : left_) {
    if (one->manager && !segments_wait) AskOne(one->process);
  }
  timer_.After(moment, [this, grace] { AskToEnd(grace); });
}

void Leftovers::AskToEnd(std::chrono::nanoseconds grace) {
  std::map<std::string, std::vector<const Process*>> of_owner;
  for (const auto& one : left_) {
    if (!one->living) continue;
    AskOne(one->process);
    of_owner[one->owner].push_back(&one->process);
    told_.push_back(one->process.pid);
  }
  for (const auto& [owner, processes] : of_owner) {
    std::string names;
    for (std::size_t i = 0; i < processes.size() && i < kMostProcessesNamed; ++i) {
      names += fmt::format("{}{} {}", i == 0 ? "" : ", ", processes[i]->pid, Printable(processes[i]->name));
    }
    if (processes.size() > kMostProcessesNamed) names += ", …";
    say_(fmt::format("{} left {} process{} behind ({}): stopped", owner, processes.size(),
                     processes.size() == 1 ? "" : "es", names));
  }
  timer_.After(grace, [this] { Finish(); });
}

void Leftovers::OnEnded(One& one) {
  one.living = false;
  if (std::ranges::none_of(left_, &One::living)) Finish();
}

void Leftovers::Finish() {
  if (!done_) return;  // a second call to Finish was already queued
  timer_.Cancel();
  for (const auto& one : left_) one->ended.reset();
  // Never call `done` from inside Stop.
  asio::post(loop_, std::exchange(done_, nullptr));
}

}  // namespace dtrun::process
