#include "core/membership/agent_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "core/node/serve.h"
#include "core/process/process.h"

namespace dtrun::membership {
namespace {

constexpr int kSshFailed = 255;

// Quotes for a shell that parses the words again on the other side, as with ssh.
std::string ShellQuote(const std::string& word) {
  if (!word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                              "_-./+,:=@%") == std::string::npos) {
    return word;
  }
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// `line`: a Slurm step prints "execve(): PATH: No such file or directory".
std::string NextStep(const Cluster& cluster, const hosts::StartCommand& command,
                     const process::Ending& ending, const std::string& line) {
  const bool not_run = ending.code == 127 || ending.code == 126 || line.find("execve()") != std::string::npos;
  if (ending.signal == 0 && not_run) {
    return fmt::format("; install dtrun there as '{}', or set cluster.dtrun to its path", cluster.dtrun);
  }
  if (cluster.connect == Cluster::Connect::kLauncher)
    return command.trial.empty() ? "" : fmt::format("; try `{}` by hand", command.trial);
  if (ending.signal != 0) return "";
  // ssh prints getaddrinfo's own text.
  if (ending.code == kSshFailed && line.find("Could not resolve hostname") != std::string::npos) {
    return fmt::format(
        "; correct the name in --hosts or cluster.hosts, or give it an address in /etc/hosts or "
        "~/.ssh/config; `{}` tries it by hand",
        command.trial);
  }
  if (ending.code == kSshFailed)
    return fmt::format("; try `{}` by hand, and correct cluster.remote_shell", command.trial);
  return ending.code == 0 ? "; cluster.remote_shell must run the command that dtrun appends to it on that "
                            "host"
                          : "";
}

}  // namespace

std::vector<std::string> AgentArgv(const std::string& dtrun) { return {dtrun, "agent"}; }

hosts::StartCommand ShellCommand(const Cluster& cluster, const std::string& host) {
  hosts::StartCommand command{cluster.remote_shell, {0}, {}, {}, {}};
  for (const std::string& word : cluster.remote_shell) command.trial += ShellQuote(word) + " ";
  command.trial += ShellQuote(host) + " true";
  command.argv.push_back(host);
  for (const std::string& word : AgentArgv(cluster.dtrun)) command.argv.push_back(ShellQuote(word));
  return command;
}

std::string ProgramOf(const hosts::StartCommand& command) {
  return std::filesystem::path(command.argv[0]).filename();
}

bool IsTelling(const hosts::StartCommand& command, const std::string& line) {
  return command.ending.empty() || !line.starts_with(ProgramOf(command) + ": ") ||
         line.find(command.ending) == std::string::npos;
}

std::pair<std::string, std::string> SpeakerOf(const std::string& line) {
  constexpr std::string_view kName = "dtrun: ";
  if (!line.starts_with(kName)) return {"", line};
  const auto end = line.find(": ", kName.size());
  const std::string host = line.substr(kName.size(), end - kName.size());
  if (end == std::string::npos || host.empty() || host.find(' ') != std::string::npos) return {"", line};
  return {host, line.substr(end + 2)};
}

// Decides by ssh's message where it is clear, otherwise by the exit code, which is that of a shell for an
// agent that was killed. A launcher's command retries temporary failures itself.
bool IsFinal(const Cluster& cluster, const process::Ending& ending, const std::string& line) {
  if (ending.signal != 0 || ending.code == 128 + SIGKILL) return false;
  if (cluster.connect == Cluster::Connect::kLauncher || ending.code != kSshFailed) return true;
  const auto says = [&](std::string_view word) { return line.find(word) != std::string::npos; };
  constexpr std::string_view kFinal[] = {"Permission denied", "Host key verification failed",
                                         "REMOTE HOST IDENTIFICATION HAS CHANGED",
                                         "Bad owner or permissions"};
  // Texts of a resolver that answered (EAI_NONAME of glibc and of musl, EAI_NODATA), not of one that did not.
  constexpr std::string_view kNoSuchName[] = {"Name or service not known", "Name does not resolve",
                                              "No address associated with hostname"};
  return std::ranges::any_of(kFinal, says) ||
         (!cluster.names_come_late && says("Could not resolve hostname") &&
          std::ranges::any_of(kNoSuchName, says));
}

bool AgentDied(const process::Ending& ending) {
  return ending.signal != 0 || ending.code != node::AgentLink::kLost;
}

std::string WhyEnded(const Cluster& cluster, const hosts::StartCommand& command,
                     const process::Ending& ending, const std::string& line) {
  std::string why = line;
  // Output of a shell before an exit without its own failure may be unrelated, for example a banner.
  const bool unclear = line.empty() || ending.signal != 0 || ending.code == 0;
  if (unclear && !line.empty()) why += "; ";
  if (unclear && ending.signal != 0) {
    why += fmt::format("{} was killed by {} before the agent joined", ProgramOf(command),
                       process::SignalName(ending.signal));
  } else if (unclear) {
    why += fmt::format("{} exited with code {} before the agent joined", ProgramOf(command), ending.code);
  }
  if (cluster.connect == Cluster::Connect::kLauncher)
    why += fmt::format(" (a command of launcher '{}')", cluster.launcher);
  return why + NextStep(cluster, command, ending, line);
}

}  // namespace dtrun::membership
