// The commands that start agents on other hosts, and what it means when one of them ends.
//
// Each becomes an AgentShell. Pure; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/membership/cluster.h"
#include "core/verdict/facts.h"

namespace dtrun::membership {

// What runs on a host as its agent.
std::vector<std::string> AgentArgv(const std::string& dtrun);
// cluster.remote_shell HOST DTRUN agent, with a trial that has `true` in the place of dtrun.
hosts::StartCommand ShellCommand(const Cluster& cluster, const std::string& host);

// The name of the program that a command runs: "ssh".
std::string ProgramOf(const hosts::StartCommand& command);
// Whether a line that such a command printed tells why something failed, and not only that it ended:
// "srun: error: node1: task 0: Exited with exit code 2" with the ending ": task".
bool IsTelling(const hosts::StartCommand& command, const std::string& line);
// A line as an agent prints it, "dtrun: node1: cannot reach ...": its host and the rest; else no host, and
// the whole line.
std::pair<std::string, std::string> SpeakerOf(const std::string& line);
// Whether trying again cannot help. `line`: the last one that the command printed.
bool IsFinal(const Cluster& cluster, const process::Ending& ending, const std::string& line);
// Why it ended before an agent joined, and what the user may do: "...; install dtrun there as '/opt/dtrun',
// ...".
std::string WhyEnded(const Cluster& cluster, const hosts::StartCommand& command,
                     const process::Ending& ending, const std::string& line);

}  // namespace dtrun::membership
