#include "core/node/running_rank.h"

#include <csignal>

#include "core/process/process.h"

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

}  // namespace dtrun::node
