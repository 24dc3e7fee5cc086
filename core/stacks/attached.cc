#include "core/stacks/attached.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace dtrun::stacks {

Attached::Scope::Scope(Attached& all, pid_t process) : all_(all) {
  const std::lock_guard lock(all_.mutex_);
  entry_ = all_.entries_.insert(all_.entries_.end(), Entry{.process = process});
}

Attached::Scope::~Scope() {
  const std::lock_guard lock(all_.mutex_);
  all_.entries_.erase(entry_);
}

void Attached::Scope::Runs(pid_t tool, int handle) {
  const std::lock_guard lock(all_.mutex_);
  entry_->tool = tool;
  entry_->handle = handle;
}

void Attached::Scope::Gone() { Runs(0, -1); }

void Attached::Scope::Kill() {
  const std::lock_guard lock(all_.mutex_);
  Attached::Kill(*entry_);
}

bool Attached::Has(pid_t process) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(entries_, process, &Entry::process) != entries_.end();
}

std::vector<pid_t> Attached::tools() const {
  const std::lock_guard lock(mutex_);
  std::vector<pid_t> tools;
  for (const Entry& entry : entries_) {
    if (entry.tool != 0) tools.push_back(entry.tool);
  }
  return tools;
}

void Attached::KillTools() {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) Kill(entry);
}

// Kills the group as well: a tool may be a wrapper script. The pid belongs to the tool until it is reaped,
// which the handle shows.
void Attached::Kill(const Entry& entry) {
  if (entry.tool == 0 || ::syscall(SYS_pidfd_send_signal, entry.handle, SIGKILL, nullptr, 0) != 0) return;
  ::kill(-entry.tool, SIGKILL);
}

}  // namespace dtrun::stacks
