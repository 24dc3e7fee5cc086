// Lines for the user about ranks of this host. Pure; any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/contract/checker.h"

namespace dtrun::node {

// A rank overwrote the memory in which its calls are compared.
std::string DamageLine(const contract::Damage& damage);

// Process `pid` of `rank` is stopped.
std::string StoppedLine(int rank, pid_t pid, int signal);

// Ranks that did not get a signal from the user.
std::string NotForwardedLine(int signal, const std::vector<int>& ranks);

// /proc belongs to another PID namespace.
std::string ForeignProcLine();

}  // namespace dtrun::node
