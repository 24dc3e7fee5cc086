#include "core/node/rivals.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "core/base/read_file.h"
#include "core/base/text.h"
#include "core/process/process.h"

namespace dtrun::node {
namespace {

constexpr std::chrono::seconds kScanEvery{1}, kOneAfterTheOther{8};
constexpr double kShare = 0.1;  // of a processor

}  // namespace

void Rivals::Scan() {
  const auto now = Clock::now();
  if (now - at_ < kScanEvery) return;
  seconds_ = now - at_ <= kOneAfterTheOther ? std::chrono::duration<double>(now - at_).count() : 0;
  at_ = now;
  std::map<pid_t, Used> found;
  std::map<pid_t, pid_t> parents;
  for (const auto& entry : EntriesOf("/proc")) {
    const auto pid = static_cast<pid_t>(std::strtol(entry.filename().c_str(), nullptr, 10));
    if (pid <= 0) continue;
    const auto process = process::ReadProcess(pid);
    if (!process) continue;
    parents[pid] = process->parent;
    Used used{process->start, process->used, {}, process->last_processor, Printable(process->name)};
    const auto before = used_.find(pid);
    if (before != used_.end() && before->second.start == used.start)
      used.now = std::max(used.all - before->second.all, std::chrono::nanoseconds(0));
    found.emplace(pid, std::move(used));
  }
  const auto is_ours = [&parents](pid_t pid) {
    std::set<pid_t> passed;  // a snapshot of changing processes may have a cycle
    while (pid > 1 && pid != ::getpid() && passed.insert(pid).second) {
      const auto parent = parents.find(pid);
      pid = parent == parents.end() ? 0 : parent->second;
    }
    return pid == ::getpid();
  };
  std::erase_if(found, [&](const auto& one) { return is_ours(one.first); });
  used_ = std::move(found);
}

std::optional<Rival> Rivals::Of(pid_t pid) const {
  cpu_set_t allowed;
  if (seconds_ == 0 || ::sched_getaffinity(pid, sizeof allowed, &allowed) != 0) return std::nullopt;
  const std::chrono::duration<double> least(kShare * seconds_);
  const std::pair<const pid_t, Used>* most = nullptr;
  for (const auto& one : used_) {
    const Used& used = one.second;
    if (used.now.count() == 0 || used.now < least || used.processor < 0 || used.processor >= CPU_SETSIZE ||
        !CPU_ISSET(static_cast<std::size_t>(used.processor), &allowed))
      continue;
    if (most == nullptr || used.now > most->second.now) most = &one;
  }
  if (most == nullptr) return std::nullopt;
  return Rival{most->first, most->second.command};
}

}  // namespace dtrun::node
