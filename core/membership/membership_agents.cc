// How the membership starts agents on other hosts, and starts them again.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/port_range.h"
#include "core/base/secrets.h"
#include "core/log/log.h"
#include "core/membership/agent_command.h"
#include "core/membership/membership.h"
#include "core/process/process.h"
#include "core/protocol/join_request.h"

namespace dtrun::membership {
namespace {

constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::seconds kLongestPause{5};
constexpr log::Room kAgentsLog("membership");
// Maximum number of lines of one shell that are printed for the user.
constexpr int kMostTold = 200;
constexpr std::size_t kLongestTold = 500;  // bytes of each

}  // namespace

void Membership::StartMissing() {
  if (cluster_.connect == Cluster::Connect::kManual) return;
  std::vector<Member*> missing;
  for (auto& member : members_) {
    if (member->listed && !member->hopeless && member->start == nullptr && member->host == nullptr)
      missing.push_back(member.get());
  }
  if (missing.empty()) return;
  if (cluster_.connect == Cluster::Connect::kShell) {
    for (Member* member : missing) StartAgents(ShellCommand(cluster_, member->name), {member});
    return;
  }
  std::vector<std::string> names;
  for (const Member* member : missing) names.push_back(member->name);
  const auto commands = cluster_.connector(names);
  if (!commands) return Fail(commands.error());
  for (const hosts::StartCommand& command : *commands) {
    std::vector<Member*> members;
    for (const std::size_t host : command.hosts) members.push_back(missing[host]);
    StartAgents(command, std::move(members));
  }
}

void Membership::StartAgents(const hosts::StartCommand& command, std::vector<Member*> members) {
  Result<protocol::Key> key = protocol::Key::FromHex(key_digits_);
  protocol::JoinRequest request{job_, names_, listener_->port(),     *key,
                                -1,   {},     cluster_.join_timeout, cluster_.lost_after};
  request.port_range = ToText(UsedPortRange());
  const log::Options logged = log::Current();
  request.log_levels = log::ToText(logged.levels);
  request.log_json = logged.json;
  auto start = std::make_shared<Starter>();
  start->command = command;
  Starter* const self = start.get();
  if (members.size() == 1) {
    request.host = members[0]->number;
    start->label = members[0]->name;
  } else {
    for (const Member* member : members) request.nodes.emplace_back(member->number, member->name);
    request.node_variable = command.host_variable;
    start->label = ProgramOf(command);
  }
  std::vector<int> numbers;
  for (const Member* member : members) numbers.push_back(member->number);
  AgentShell::Handlers handlers;
  handlers.on_line = [this, self](const std::string& line) { OnLine(*self, line); };
  handlers.on_link = [this](int host, UniqueFd link, const std::string& from) {
    OnLink(host, std::move(link), from);
  };
  // Not from inside: the shell will be destroyed. Also, the channels may know the reason better, so process
  // their pending bytes first.
  handlers.on_ended = [this, weak = std::weak_ptr(start), gone = gone_](const process::Ending& ending) {
    boost::asio::post(loop_, [this, weak, ending, gone] {
      const std::shared_ptr<Starter> ended = weak.lock();
      if (!*gone && ended != nullptr) OnEnded(ended, ending);
    });
  };
  handlers.on_noise = [this, weak = std::weak_ptr(start), gone = gone_] {
    boost::asio::post(loop_, [this, weak, gone] {
      const std::shared_ptr<Starter> noisy = weak.lock();
      if (!*gone && noisy != nullptr) OnNoise(noisy);
    });
  };
  auto shell = AgentShell::Start(loop_, command.argv, protocol::ToLine(request, key_digits_), numbers, pids_,
                                 std::move(handlers));
  kAgentsLog.Info("starting the agent of {}: {}", start->label, fmt::join(MaskArguments(command.argv), " "));
  if (!shell) {
    const std::string by = cluster_.connect == Cluster::Connect::kLauncher
                               ? fmt::format(", a command of launcher '{}'", cluster_.launcher)
                               : "";
    return Fail({shell.error().code, fmt::format("host {}: {}{}", start->label, shell.error().text, by)});
  }
  start->shell = *std::move(shell);
  for (Member* member : members) member->start = self;
  start->members = std::move(members);
  starts_.push_back(std::move(start));
}

void Membership::OnLine(Starter& start, const std::string& line) {
  kAgentsLog.Debug("{} printed: {}", start.label, line);
  if (!IsTelling(start.command, line)) return;
  auto [speaker, text] = SpeakerOf(line);
  if (text.size() > kLongestTold) text = text.substr(0, kLongestTold) + "…";
  start.last_line = text;
  const bool joined =
      std::ranges::any_of(start.members, [](const Member* member) { return member->host != nullptr; });
  if (joined && !dismissed_) {
    if (++start.told > kMostTold) return;
    return services_.say(
        fmt::format("{}: {}{}", start.label, text,
                    start.told == kMostTold ? " (the rest of its output is not shown)" : ""));
  }
  const auto is_speaker = [&, name = speaker](const Member* member) { return member->name == name; };
  const bool known = std::ranges::any_of(start.members, is_speaker);
  for (Member* member : start.members) {
    if (!known || is_speaker(member)) member->last_error = text;
  }
}

// A shell that prints for ever before its agents run will not start them.
void Membership::OnNoise(const std::shared_ptr<Starter>& start) {
  const auto runs = [&](const Member* member) {
    return member->host != nullptr || start->shell->HasStarted(member->number);
  };
  if (dismissed_ || std::ranges::any_of(start->members, runs)) return;
  std::erase(starts_, start);
  for (Member* member : start->members) {
    member->start = nullptr;
    const std::string why = fmt::format(
        "its remote shell printed {} MiB without starting an agent; {}; check the login files there "
        "(.bashrc, .profile) and cluster.remote_shell",
        AgentShell::kMostNoise >> 20,
        start->last_line.empty() ? "there is no complete line"
                                 : fmt::format("its last line: {}", start->last_line));
    member->last_error = why;
    GiveUp(*member, {DTRUN_REMOTE_FAILURE, fmt::format("host {}: {}", member->name, why)});
  }
}

// The network leads this host's agent to no address of the root's.
void Membership::OnLink(int host, UniqueFd link, const std::string& from) {
  Member* const member = Numbered(host);
  if (member == nullptr) return;
  member->detour = from.empty() ? member->name : from;
  listener_->Enter(std::move(link), member->detour);
}

void Membership::OnEnded(const std::shared_ptr<Starter>& start, const process::Ending& ending) {
  std::erase(starts_, start);
  for (Member* member : start->members) {
    const std::string why = WhyEnded(cluster_, start->command, ending, start->last_line);
    member->start = nullptr;
    if (dismissed_) continue;
    if (member->host != nullptr && member->introduction) {
      const std::string how = ending.signal != 0 ? "was killed by " + process::SignalName(ending.signal)
                                                 : fmt::format("exited with code {}", ending.code);
      member->host->Lose(fmt::format("its {} {}{}{}",
                                     cluster_.connect == Cluster::Connect::kShell ? "remote shell"
                                                                                  : ProgramOf(start->command),
                                     how, start->last_line.empty() ? "" : ": ", start->last_line),
                         true);
      continue;
    }
    member->host.reset();
    member->last_error = why;
    if (IsFinal(cluster_, ending, why)) {
      GiveUp(*member, {DTRUN_REMOTE_FAILURE, fmt::format("host {}: {}", member->name, why)});
    }
  }
  if (!dismissed_) RetryLater();
}

void Membership::RetryLater() {
  if (std::exchange(retrying_, true)) return;
  pause_ = std::clamp<std::chrono::nanoseconds>(2 * pause_, kFirstPause, kLongestPause);
  retry_.expires_after(pause_);
  retry_.async_wait([this, gone = gone_](const boost::system::error_code& error) {
    if (error || *gone) return;
    retrying_ = false;
    StartMissing();
  });
}

}  // namespace dtrun::membership
