#include "core/agent/leftovers.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <csignal>

#include "core/plan/dialect.h"

namespace dtrun::agent {
namespace {

constexpr std::size_t kMostNamed = 8;

}  // namespace

std::string Leftovers::OwnerOf(const Process& process) const {
  if (auto found = rank_of_group_.find(process.group); found != rank_of_group_.end()) {
    return fmt::format("rank {}", found->second);
  }
  const std::string rank = StartEnvironment(process.pid, dialect::kRank);
  return rank.empty() ? "the job" : "rank " + rank;
}

std::vector<std::string> Leftovers::Stop(std::chrono::nanoseconds grace, std::function<void()> done) {
  done_ = std::move(done);
  std::map<std::string, std::vector<Process>> left;
  for (Process& process : Descendants(::getpid(), spared_)) {
    if (process.state == 'Z') continue;
    auto handle = std::make_unique<Descriptor>(loop_);
    const int fd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
    if (fd < 0) continue;  // ended just now
    handle->assign(fd);
    handle->async_wait(Descriptor::wait_read, [this](const boost::system::error_code& error) {
      if (!error && --living_ == 0) Finish();
    });
    handles_.push_back(std::move(handle));
    ++living_;
    const std::string owner = OwnerOf(process);  // can be seen only while it lives
    ::kill(process.pid, SIGTERM);
    ::kill(process.pid, SIGCONT);  // a stopped process takes SIGTERM only then
    left[owner].push_back(std::move(process));
  }
  if (living_ == 0) {
    Finish();
    return {};
  }
  timer_.expires_after(grace);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) Finish();
  });

  std::vector<std::string> lines;
  for (const auto& [owner, processes] : left) {
    std::string names;
    for (std::size_t i = 0; i < processes.size() && i < kMostNamed; ++i) {
      names += fmt::format("{}{} {}", i == 0 ? "" : ", ", processes[i].pid, processes[i].name);
    }
    if (processes.size() > kMostNamed) names += ", …";
    lines.push_back(fmt::format("{} left {} process{} behind ({}): stopped", owner, processes.size(),
                                processes.size() == 1 ? "" : "es", names));
  }
  return lines;
}

void Leftovers::Hurry() { Finish(); }

void Leftovers::Finish() {
  if (!done_) return;  // a second reason to finish was queued already
  timer_.cancel();
  handles_.clear();
  living_ = 0;
  // Never from inside Stop, whose caller wants to print its lines first.
  boost::asio::post(loop_, std::exchange(done_, nullptr));
}

}  // namespace dtrun::agent
