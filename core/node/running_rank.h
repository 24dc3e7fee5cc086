// A process of this host that has ranks of the job, and lines for the user about it.
//
// Owned by the local host; loop thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/contract/checker.h"
#include "core/process/child_process.h"

namespace dtrun::node {

struct RunningRank {
  int rank = 0;
  int count = 1;  // number of its ranks
  pid_t pid = 0;
  std::string folder;
  std::string program;  // the file that it runs; empty: unknown
  int signal_sent = 0;
  int stopped_by = 0;  // signal that had stopped it when it was asked to end; 0: it was running
  int forwarded = 0;   // the last signal from the user
  bool failed = false;
  std::map<std::string, std::string> given;  // see Inspector::Target
  std::shared_ptr<process::ChildProcess> process;
};

// Sends it to the process and those that it started. A stopped process handles it only after SIGCONT.
void SignalGroup(const RunningRank& one, int signal);

// Passes on a signal of the user. Returns the ranks that did not get it, because they have no handler, which
// they may set within `patience` after they started.
std::vector<int> Forward(std::vector<RunningRank>& running, int signal, std::chrono::seconds patience);

// A rank overwrote the memory in which its calls are compared.
std::string DamageLine(const contract::Damage& damage);

// Process `pid` of `rank` is stopped.
std::string StoppedLine(int rank, pid_t pid, int signal);

// Ranks that did not get a signal from the user.
std::string NotForwardedLine(int signal, const std::vector<int>& ranks);

// /proc belongs to another PID namespace.
std::string ForeignProcLine();

}  // namespace dtrun::node
