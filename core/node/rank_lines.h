// Lines for the user about ranks of this host. Pure; any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/contract/checker.h"

namespace dtrun::node {

// What a rank wrote over the memory in which its calls are compared.
std::string DamageLine(const contract::Damage& damage);

// The process `pid` of `rank` stands still.
std::string StoppedLine(int rank, pid_t pid, int signal);

// Of ranks that did not get a signal of the user's.
std::string NotForwardedLine(int signal, const std::vector<int>& ranks);

// /proc is not that of this process's PID namespace.
std::string ForeignProcLine();

}  // namespace dtrun::node
