#include "core/node/running_rank.h"

#include <fmt/format.h>

#include <csignal>

#include "core/hosts/this_machine.h"
#include "core/process/process.h"
#include "core/verdict/verdict.h"

namespace dtrun::node {

void SignalGroup(const RunningRank& one, int signal) {
  one.process->Signal(signal);
  if (signal != SIGKILL) one.process->Signal(SIGCONT);
}

std::vector<int> Forward(std::vector<RunningRank>& running, int signal, std::chrono::seconds patience) {
  std::vector<int> untold;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (RunningRank& one : running) {
    if (!one.process->living()) continue;
    if (process::Survives(one.pid, signal, deadline)) {
      one.forwarded = signal;
      one.process->Tell(signal);
    } else {
      untold.push_back(one.rank);
    }
  }
  return untold;
}

std::string DamageLine(const contract::Damage& damage) {
  return fmt::format(
      "dtrun: warning: {} (on {}): its calls are no longer compared; next: look for a write "
      "past "
      "the end of a buffer in rank {}",
      damage.text, hosts::HostName(), damage.rank);
}

std::string StoppedLine(int rank, pid_t pid, int signal) {
  return fmt::format(
      "dtrun: rank {} on {} was stopped by {}: the job waits for it; `kill -CONT {}` there resumes it", rank,
      hosts::HostName(), process::SignalName(signal), pid);
}

std::string NotForwardedLine(int signal, const std::vector<int>& ranks) {
  return fmt::format("dtrun: {} was not forwarded to {} on {}: without a handler, it would end them",
                     process::SignalName(signal), verdict::FoldRanks(ranks), hosts::HostName());
}

std::string ForeignProcLine() {
  return "dtrun: warning: /proc belongs to another PID namespace: processes that ranks leave behind cannot "
         "be "
         "found; next: mount one for this namespace, `mount -t proc proc /proc`";
}

}  // namespace dtrun::node
