// The commands that start agents on other hosts, and what it means when one of them ends.
//
// Each becomes a RemoteShell. Pure; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/membership/cluster.h"
#include "core/verdict/facts.h"

namespace dtrun::membership {

// cluster.remote_shell HOST DTRUN agent
std::vector<std::string> ShellCommand(const Cluster& cluster, const std::string& host);
// The same with `true` in the place of dtrun, quoted for the user to try.
std::string ShellTrial(const Cluster& cluster, const std::string& host);
// One step of Slurm with an agent on each of these nodes of the allocation. Its agents are told apart by the
// name that Slurm has for their node.
std::vector<std::string> StepCommand(const Cluster& cluster, const std::vector<std::string>& hosts);

// Whether a line that such a command printed tells why something failed, and not only that it ended:
// "srun: error: node1: task 0: Exited with exit code 2".
bool IsTelling(const std::string& line);
// A line as an agent prints it, "dtrun: node1: cannot reach ...": its host and the rest; else no host, and
// the whole line.
std::pair<std::string, std::string> SpeakerOf(const std::string& line);
// Whether trying again cannot help. `line`: the last one that the command printed.
bool IsFinal(const Cluster& cluster, const process::Ending& ending, const std::string& line);
// Why it ended before the agent of `host` joined, and what the user may do: "...; install dtrun there as
// '/opt/dtrun', ...".
std::string WhyEnded(const Cluster& cluster, const std::string& host, const process::Ending& ending,
                     const std::string& line);

}  // namespace dtrun::membership
