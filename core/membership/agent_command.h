// The commands that start agents on other hosts, and the interpretation of how they end.
//
// Each becomes an AgentShell. Pure; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/membership/cluster.h"
#include "core/verdict/facts.h"

namespace dtrun::membership {

// The command of the agent on a host.
std::vector<std::string> AgentArgv(const std::string& dtrun);
// cluster.remote_shell HOST DTRUN agent, with a trial that runs `true` instead of dtrun.
hosts::StartCommand ShellCommand(const Cluster& cluster, const std::string& host);

// The name of the program that a command runs, for example "ssh".
std::string ProgramOf(const hosts::StartCommand& command);
// Whether a line printed by such a command explains a failure instead of only reporting the end: "srun:
// error: node1: task 0: Exited with exit code 2" with the ending ": task".
bool IsTelling(const hosts::StartCommand& command, const std::string& line);
// Splits a line printed by an agent, "dtrun: node1: cannot reach ...", into host and rest. Other lines: an
// empty host and the whole line.
std::pair<std::string, std::string> SpeakerOf(const std::string& line);
// Whether a retry cannot help. `line`: the last line that the command printed.
bool IsFinal(const Cluster& cluster, const process::Ending& ending, const std::string& line);
// Whether the end of the command that started a joined agent is one of a process. Otherwise the agent has lost
// the root, and ended itself.
bool AgentDied(const process::Ending& ending);
// Why it ended before an agent joined, and the next step: "...; install dtrun there as '/opt/dtrun', ...".
std::string WhyEnded(const Cluster& cluster, const hosts::StartCommand& command,
                     const process::Ending& ending, const std::string& line);

}  // namespace dtrun::membership
