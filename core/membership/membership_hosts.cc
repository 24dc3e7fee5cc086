// How the membership starts agents on other hosts, and starts them again.
// Which joined hosts count, and which number each has.
// The membership's messages about missing hosts, and about the address where agents reach this host.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "core/base/endpoint.h"
#include "core/base/number.h"
#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/hosts/host_slots.h"
#include "core/hosts/this_machine.h"
#include "core/log/log.h"
#include "core/membership/agent_command.h"
#include "core/membership/membership.h"
#include "core/process/process.h"
#include "core/protocol/hello.h"
#include "core/protocol/resolve.h"

namespace dtrun::membership {
namespace {

constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::seconds kLongestPause{5};
constexpr log::Room kAgentsLog("membership");
// Maximum number of lines of one shell that are printed for the user.
constexpr int kMostTold = 200;
constexpr std::size_t kLongestTold = 500;  // bytes of each

constexpr std::size_t kMostMissingNamed = 8;
// A shell without output for this long is reported as silent.
constexpr std::chrono::seconds kSilence{2};

std::string Without(std::string text, const std::string& name) {
  return name.empty() ? text : ReplaceAll(std::move(text), name, "");
}

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
    asio::post(loop_, [this, weak, ending, gone] {
      const std::shared_ptr<Starter> ended = weak.lock();
      if (!*gone && ended != nullptr) OnEnded(ended, ending);
    });
  };
  handlers.on_noise = [this, weak = std::weak_ptr(start), gone = gone_] {
    asio::post(loop_, [this, weak, gone] {
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
  const bool explains = text.starts_with("  ") && !start.last_line.empty();  // the line before it
  if (text.size() > kLongestTold) text = text.substr(0, kLongestTold) + "…";
  if (!explains) start.last_line = text;
  const bool joined =
      std::ranges::any_of(start.members, [](const Member* member) { return member->host != nullptr; });
  if (joined && !dismissed_) {
    if (++start.told > kMostTold) return;
    return services_.say(
        fmt::format("{}: {}{}", start.label, text,
                    start.told == kMostTold ? " (the rest of its output is not shown)" : ""));
  }
  if (explains) return;
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
    GiveUp(*member, {DTRUN_FAILED_PRECONDITION, fmt::format("host {}: {}", member->name, why)});
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
                         AgentDied(ending));
      continue;
    }
    member->host.reset();
    member->last_error = why;
    if (IsFinal(cluster_, ending, why)) {
      GiveUp(*member, {DTRUN_FAILED_PRECONDITION, fmt::format("host {}: {}", member->name, why)});
    }
  }
  if (!dismissed_) RetryLater();
}

void Membership::RetryLater() {
  if (std::exchange(retrying_, true)) return;
  pause_ = std::clamp<std::chrono::nanoseconds>(2 * pause_, kFirstPause, kLongestPause);
  retry_.After(pause_, [this] {
    retrying_ = false;
    StartMissing();
  });
}

Membership::Member* Membership::Numbered(int number) {
  const auto found =
      std::ranges::find_if(members_, [number](const auto& member) { return member->number == number; });
  return found == members_.end() ? nullptr : found->get();
}

std::size_t Membership::There() const {
  const auto joined = std::ranges::count_if(members_, [](const auto& member) { return member->there(); });
  return static_cast<std::size_t>(joined) + (cluster_.here >= 0 ? 1 : 0);
}

// Hosts that the job has work for and that may still join.
std::size_t Membership::Wanted() const {
  const auto hopeless =
      std::ranges::count_if(members_, [](const auto& member) { return member->listed && member->hopeless; });
  return cluster_.hosts.size() - static_cast<std::size_t>(hopeless);
}

bool Membership::Enough() const {
  const std::size_t there = There();
  return there >= Wanted() || (called_ && there >= cluster_.min_hosts);
}

// Hosts that joined without a number get the free ones, in the order of their names: node2 before node10.
// Assigned numbers stay, so a host that replaces a lost one does not change the ranks of others.
void Membership::DealNumbers() {
  std::vector<Member*> waiting;
  for (auto& member : members_) {
    if (member->there() && member->number < 0) waiting.push_back(member.get());
  }
  std::ranges::stable_sort(
      waiting, [](const Member* a, const Member* b) { return hosts::NaturallyBefore(a->name, b->name); });
  int next = 0;
  for (Member* member : waiting) {
    while (next == cluster_.here || Numbered(next) != nullptr) ++next;
    if (next >= static_cast<int>(cluster_.hosts.size())) return;
    member->number = next;
  }
}

const std::string* Membership::DuplicateOf(const Member& member) const {
  static const std::string kRoot = hosts::HostName();
  if (cluster_.share_machines) return nullptr;
  if (cluster_.here >= 0 && member.introduction->machine == hosts::MachineIdentity()) {
    const std::string& name = cluster_.hosts[static_cast<std::size_t>(cluster_.here)];
    return name.empty() ? &kRoot : &name;
  }
  for (const auto& other : members_) {
    if (other.get() == &member || !other->there()) continue;
    if (other->introduction->machine == member.introduction->machine) return &other->name;
  }
  return nullptr;
}

std::string Membership::WhyMissing(const Member& member) const {
  const Starter* const start = member.start;
  if (start == nullptr) return member.last_error;
  if (start->shell->HasStarted(member.number)) {
    return fmt::format("started by {}; {}", ProgramOf(start->command),
                       member.last_error.empty() ? "it has not joined yet" : member.last_error);
  }
  if (!member.last_error.empty()) return member.last_error;
  const auto silent = std::chrono::steady_clock::now() - start->begun;
  if (silent < kSilence) return {};
  const std::string& trial = start->command.trial;
  return fmt::format("{} has printed nothing for {}; it may be waiting for the host or for a password{}",
                     ProgramOf(start->command),
                     FormatDuration(std::chrono::floor<std::chrono::seconds>(silent)),
                     trial.empty() ? "" : fmt::format(": try `{}` by hand", trial));
}

std::vector<std::pair<std::string, std::string>> Membership::Missing() const {
  std::vector<std::pair<std::string, std::string>> missing;
  for (const auto& member : members_) {
    if (!member->there()) missing.emplace_back(member->name, WhyMissing(*member));
  }
  const std::size_t there = There();
  if (cluster_.hosts[0].empty() && there < cluster_.hosts.size()) {
    missing.emplace_back(fmt::format("{} of {}", there, cluster_.hosts.size() - 1), "");
  }
  return missing;
}

// Where hosts that are started by the user or another tool must connect.
std::string Membership::Where() const {
  if (cluster_.connect != Cluster::Connect::kManual || cluster_.names.size() != 1) return {};
  const std::string& name = cluster_.names[0];
  std::string text = "; waiting at " + EndpointText(name, std::to_string(cluster_.port));
  if (!refused_.empty()) return text + "; " + refused_;
  if (name == "localhost" || name == "::1" || name.starts_with("127.")) {
    text +=
        ", which only this machine can reach; for other hosts, set --master-addr, --rdzv-endpoint or "
        "cluster.root to an address of this one";
  }
  return text;
}

// Reports hosts with the same reason in one sentence that quotes the first.
void Membership::TellGivenUp() {
  struct Reason {
    std::string text, kind, others;
  };
  std::vector<Reason> reasons;
  for (const auto& [name, error] : given_up_) {
    const std::string kind = Without(error.text, name);
    const auto known = std::ranges::find(reasons, kind, &Reason::kind);
    if (known == reasons.end()) {
      reasons.push_back({error.text, kind, ""});
    } else {
      known->others += (known->others.empty() ? "; the same for " : ", ") + name;
    }
  }
  if (reasons.empty()) return;
  std::string text;
  for (const Reason& one : reasons) text += (text.empty() ? "" : "; ") + one.text + one.others;
  const dtrun_status code = given_up_.front().second.code;
  given_up_.clear();
  if (joining_hosts_ && Wanted() < cluster_.min_hosts) return Fail({code, std::move(text)});
  services_.say("dtrun: " + text);
}

std::string Membership::StatusLine() const {
  struct Reason {
    std::string why, hosts, kind;  // same kind: equal except for the host name
  };
  std::vector<Reason> reasons;
  std::size_t missing = 0;
  std::string names;
  for (const auto& member : members_) {
    if (member->there()) continue;
    if (++missing <= kMostMissingNamed) names += (names.empty() ? "" : ", ") + member->name;
    const std::string why = WhyMissing(*member);
    if (why.empty()) continue;
    const std::string kind = Without(why, member->name);
    const auto known = std::ranges::find(reasons, kind, &Reason::kind);
    if (known != reasons.end()) {
      known->hosts += ", " + member->name;
    } else if (reasons.size() < kMostMissingNamed) {
      reasons.push_back({why, member->name, kind});
    }
  }
  if (missing > kMostMissingNamed) names += ", …";
  // Hosts that are started by the user or another tool have no names yet.
  const std::string who = cluster_.hosts[0].empty()
                              ? fmt::format("{} missing", cluster_.hosts.size() - There())
                              : "missing: " + names;
  std::string line = fmt::format("{} of {} hosts joined; {}", There(), cluster_.hosts.size(), who);
  // A single reason for all missing hosts follows their names.
  if (reasons.size() == 1 && reasons[0].hosts == names) return line + ": " + reasons[0].why + Where();
  for (const Reason& reason : reasons) line += fmt::format("; {}: {}", reason.hosts, reason.why);
  return line + Where();
}

// Checks the address where manually started hosts find this one. Other hosts may see it differently, behind a
// service or a forwarded port, so a mismatch is reported but is not an error.
void Membership::CheckAddress() {
  if (cluster_.connect != Cluster::Connect::kManual || cluster_.names.size() != 1) return;
  const std::string name = cluster_.names[0];
  address_lookup_ = protocol::ResolveBySystem(loop_, name, [this, name](const protocol::Addresses& found) {
    std::string trouble;
    if (!found) trouble = found.error().text;
    if (found && std::ranges::none_of(*found, [](const auto& address) {
          return address.is_loopback() || hosts::IsOwnAddress(address.to_string());
        })) {
      trouble = fmt::format("no interface of this host has the address {}; it has {}", name,
                            fmt::join(hosts::OwnAddresses(), ", "));
    }
    if (trouble.empty() || !joining_hosts_) return;
    services_.say(fmt::format(
        "dtrun: waiting on port {} for {} more host{}, but {}; the others connect to {}: correct "
        "--master-addr, --rdzv-endpoint or cluster.root, unless something forwards that address to this host",
        cluster_.port, cluster_.hosts.size() - There(), cluster_.hosts.size() - There() == 1 ? "" : "s",
        trouble, name));
  });
}

}  // namespace dtrun::membership
