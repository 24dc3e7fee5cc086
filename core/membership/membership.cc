#include "core/membership/membership.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/number.h"
#include "core/base/port_user.h"
#include "core/hosts/host_slots.h"
#include "core/hosts/this_machine.h"
#include "core/log/log.h"
#include "core/membership/agent_command.h"
#include "core/plan/hosts.h"
#include "core/store/server.h"

namespace dtrun::membership {
namespace {

constexpr log::Room kLog("membership");
constexpr std::chrono::seconds kFirstProgress{2}, kProgressEvery{10};
// The report of a host that cannot join waits this long for others to be reported with it.
constexpr std::chrono::seconds kTogether{1};
// Time for agents and their remote shells to leave.
constexpr std::chrono::seconds kDismissal{2};

}  // namespace

Membership::Membership(asio::io_context& loop, process::UserSignals& signals, const Cluster& cluster,
                       std::string job, std::set<pid_t>& pids, RemoteHost::Services services)
    : loop_(loop),
      signals_(signals),
      cluster_(cluster),
      job_(std::move(job)),
      pids_(pids),
      services_(std::move(services)),
      key_digits_(store::NewJobKey()),
      names_(cluster.names),
      deadline_(loop),
      progress_(loop),
      last_call_(loop),
      retry_(loop),
      together_(loop) {
  for (std::size_t i = 0; i < cluster_.hosts.size(); ++i) {
    if (static_cast<int>(i) == cluster_.here || cluster_.hosts[i].empty()) continue;
    auto member = std::make_unique<Member>();
    member->name = cluster_.hosts[i];
    member->number = static_cast<int>(i);
    member->listed = true;
    members_.push_back(std::move(member));
  }
}

Membership::~Membership() { *gone_ = true; }

Result<std::vector<Membership::Present>> Membership::Gather() {
  if (listener_ == nullptr) {
    if (Status listening = Listen(); !listening) return listening.error();
    FindOwnNames();
    CheckAddress();
  }
  joining_hosts_ = true;
  joining_since_ = std::chrono::steady_clock::now();
  told_.clear();
  ForgetLost();
  failure_.reset();
  called_ = call_running_ = false;
  pause_ = {};
  for (auto& member : members_) {
    if (member->host == nullptr) continue;
    member->host->Attach([this, one = member.get()](const protocol::Event& event) { OnEvent(*one, event); });
  }
  signals_.NoteEndIn(&interrupted_);
  StartMissing();
  deadline_.After(cluster_.join_timeout, [this] {
    called_ = There() >= cluster_.min_hosts;
    if (called_) return;
    Fail({DTRUN_TIMEOUT,
          fmt::format("not all hosts have joined within cluster.join_timeout: {}", StatusLine())});
  });
  AwaitLastCall();
  AwaitProgress(kFirstProgress);
  while (!Enough() && !failure_ && interrupted_ == 0 && loop_.run_one() > 0) {
  }
  TellGivenUp();
  joining_hosts_ = false;
  for (Timer* const timer : {&together_, &deadline_, &progress_, &last_call_}) timer->Cancel();
  signals_.Handle({});
  if (failure_) return *failure_;
  if (interrupted_ != 0) {
    if (!Enough()) services_.say("dtrun: " + StatusLine());
    return Error{DTRUN_ABORTED, "the job was ended while its hosts were joining"};
  }
  cluster_.names_come_late = true;  // all did resolve: one that no longer does may soon be back

  DealNumbers();
  std::vector<Present> present;
  if (cluster_.here >= 0) {
    Result<plan::HostOffer> here = plan::OfferHere();
    if (!here) return here.error();
    here->number = cluster_.here;
    present.push_back({*std::move(here), hosts::MachineIdentity(), nullptr});
  }
  for (auto& member : members_) {
    member->gathered = member->there() && member->number >= 0;
    if (!member->gathered) continue;
    const protocol::Introduction& said = *member->introduction;
    Result<binding::Topology> topology = binding::ParseTopology(said.processors);
    if (!topology) return topology.error();
    present.push_back(
        {{*std::move(topology), said.gpus, member->listed ? said.host_name : member->name, member->number},
         said.machine,
         member->host.get()});
  }
  std::ranges::sort(present, {}, [](const Present& one) { return one.offer.number; });
  return present;
}

bool Membership::Release(const RemoteHost& host, int signal) {
  if (There() <= cluster_.min_hosts) return false;
  for (auto& member : members_) {
    if (member->host.get() == &host) member->leaving = signal;
  }
  return true;
}

void Membership::Dismiss(int exit_code, const std::string& why) {
  dismissed_ = true;
  retry_.Cancel();
  std::size_t left = 0;
  for (auto& member : members_) {
    if (member->host == nullptr || member->host->lost()) continue;
    ++left;
    // An agent started by a remote shell has no user to tell.
    member->host->Leave(exit_code, member->start == nullptr ? why : "", [&left] { --left; });
  }
  bool over = false;
  Timer timer(loop_);
  timer.After(kDismissal, [&over] { over = true; });
  const auto away = [&] {
    return left == 0 && std::ranges::none_of(members_, [](const auto& member) {
             return member->there() && member->start != nullptr && member->start->shell->living();
           });
  };
  while (!over && !away() && loop_.run_one() > 0) {
  }
  loop_.poll();  // run handlers that refer to this object
}

// The address at which agents connect, if it is certain: the one that the user names, or loopback if every
// host is reached over it. Otherwise only the agent's host knows which of our addresses it can reach.
std::string Membership::OnlyAddress() const {
  if (cluster_.names.size() == 1 && hosts::IsOwnAddress(cluster_.names[0])) return cluster_.names[0];
  const auto over_loopback = [](const auto& member) {
    const std::string name = member->name.substr(member->name.find('@') + 1);
    return name == "localhost" || hosts::AddressTowards(name).starts_with("127.");
  };
  const bool local = cluster_.names.empty() && cluster_.connect == Cluster::Connect::kShell &&
                     !members_.empty() && std::ranges::all_of(members_, over_loopback);
  return local ? "127.0.0.1" : "";
}

Status Membership::Listen() {
  Result<protocol::Key> made = protocol::Key::FromHex(key_digits_);
  const std::string address = OnlyAddress();
  if (!address.empty()) names_ = {address};
  protocol::Listener::Options options{.address = address,
                                      .port = cluster_.port,
                                      .job = job_,
                                      .key = cluster_.key ? *cluster_.key : *made,
                                      .welcome = {hosts::HostName(), cluster_.lost_after},
                                      .key_origin = cluster_.key_origin};
  auto listener = protocol::Listener::Listen(
      loop_, std::move(options),
      {[this](const protocol::Hello& hello, const std::string& from) { return Admit(hello, from); },
       [this](const protocol::Hello& hello, std::unique_ptr<protocol::Channel> channel) {
         Join(hello, std::move(channel));
       },
       [this](const std::string& line) {
         refused_ = line;
         services_.say("dtrun: " + line);
       }});
  if (!listener) {
    Error error = listener.error();
    const bool manual = cluster_.connect == Cluster::Connect::kManual;
    if (manual && ProgramListeningOn(cluster_.port) == "dtrun")
      error.text += "; if that is this job's root, give this host another number (--node-rank, --host-index)";
    error.text.insert(0, cluster_.port_place);
    return error;
  }
  listener_ = *std::move(listener);
  return {};
}

// The address with a route to the first host comes first; an ssh alias may have none.
void Membership::FindOwnNames() {
  if (!names_.empty()) return;
  names_ = hosts::OwnAddresses();
  for (const auto& member : members_) {
    const std::string own = hosts::AddressTowards(member->name.substr(member->name.find('@') + 1));
    if (own.empty()) continue;
    std::erase(names_, own);
    names_.insert(names_.begin(), own);
    break;
  }
  if (names_.empty()) names_.push_back("127.0.0.1");
}

Status Membership::Admit(const protocol::Hello& hello, const std::string& from) {
  const int hosts = static_cast<int>(cluster_.hosts.size());
  const bool dealt = hello.host_index == -1 && cluster_.hosts[0].empty();
  if (dealt) return {};
  if (hello.host_index < 0 || hello.host_index >= hosts) {
    return Error::Of(DTRUN_INVALID_ARGUMENT,
                     "host index {} is not one of this job's {} hosts; number them from 0", hello.host_index,
                     hosts);
  }
  if (hello.host_index == cluster_.here) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "host {} is the root itself; give each host its own index",
                     hello.host_index);
  }
  const Member* member = Numbered(hello.host_index);
  if (member == nullptr || member->host == nullptr) return {};
  if (member->host->lost()) {
    return Error::Of(DTRUN_BUSY, "host {} was lost, and its ranks are being ended", member->name);
  }
  return Error::Of(DTRUN_INVALID_ARGUMENT, "host {} ({}) has joined already, from {}; {} gave the same index",
                   hello.host_index, member->name, member->host->peer(), from);
}

// Containers may share one name, and nodes one machine: the second is reported as "pod#1".
std::string Membership::UnusedName(const std::string& name) const {
  const auto used = [&](const std::string& wanted) {
    return (cluster_.here >= 0 && wanted == hosts::HostName()) ||
           std::ranges::any_of(members_, [&](const auto& one) {
             const bool here = one->host == nullptr ? one->listed : !one->host->lost();
             return here && one->name == wanted;
           });
  };
  std::string unused = name;
  for (int i = 1; used(unused); ++i) unused = fmt::format("{}#{}", name, i);
  return unused;
}

void Membership::Join(const protocol::Hello& hello, std::unique_ptr<protocol::Channel> channel) {
  Member* member = hello.host_index < 0 ? nullptr : Numbered(hello.host_index);
  if (member == nullptr) {
    std::string name = UnusedName(hello.host_name);
    members_.push_back(std::make_unique<Member>());
    member = members_.back().get();
    member->name = std::move(name);
    member->number = hello.host_index;
  }
  kLog.Info("host {} has connected from {}", member->name, channel->peer());
  member->hopeless = false;
  refused_.clear();
  if (!member->detour.empty() && channel->peer() == member->detour) {
    services_.say(fmt::format("dtrun: {}: its control link goes through {}{}", member->name,
                              member->start == nullptr ? "its shell" : ProgramOf(member->start->command),
                              member->last_error.empty() ? "" : ": " + member->last_error));
  }
  member->host = std::make_unique<RemoteHost>(
      loop_, member->name, std::move(channel), services_,
      [this, member](const protocol::Introduction& introduction) { OnIntroduced(*member, introduction); });
  member->host->Attach([this, member](const protocol::Event& event) { OnEvent(*member, event); });
}

void Membership::OnIntroduced(Member& member, const protocol::Introduction& introduction) {
  member.introduction = introduction;
  kLog.Info("host {} is {}: processors {}, {} GPUs", member.name, introduction.host_name,
            introduction.processors, introduction.gpus.devices.size());
  if (const std::string* duplicate = DuplicateOf(member)) {
    Error error{DTRUN_INVALID_ARGUMENT,
                fmt::format("hosts {} and {} are one machine ({}); list it once with more slots, or set "
                            "cluster.oversubscribe = true",
                            *duplicate, member.name, introduction.host_name)};
    // Without a list, no other host is sure to take its place.
    const bool needed = !member.listed && There() <= cluster_.min_hosts;
    if (joining_hosts_ && needed) return Fail(std::move(error));
    member.last_error = error.text;
    return GiveUp(member, std::move(error));
  }
  if (joining_hosts_) return AwaitLastCall();
  const auto gathered = std::ranges::count_if(members_, &Member::gathered);
  const bool room = gathered + (cluster_.here >= 0 ? 1 : 0) < static_cast<std::ptrdiff_t>(Wanted());
  if (room && on_newcomer_) on_newcomer_(member.name);
  if (room) return;
  services_.say(fmt::format("dtrun: host {} has joined and waits as a spare", member.name));
}

// Handles an event of a host that no controller uses.
void Membership::OnEvent(Member& member, const protocol::Event& event) {
  if (const auto* asked = std::get_if<protocol::Asked>(&event); asked != nullptr && joining_hosts_) {
    if (process::UserSignals::EndsJob(asked->signal)) interrupted_ = asked->signal;
    return;
  }
  const auto* lost = std::get_if<protocol::Lost>(&event);
  if (lost == nullptr) return;
  const bool needed = joining_hosts_ && Wanted() <= cluster_.min_hosts;
  if (needed && member.start != nullptr && member.start->shell->living() && !member.host->broke()) {
    return Fail({DTRUN_REMOTE_FAILURE, fmt::format("host {} was lost: {}", member.name, lost->why)});
  }
  kLog.Info("host {} was lost: {}", member.name, lost->why);
  if (joining_hosts_ && member.listed)
    services_.say(fmt::format("dtrun: {} was lost while hosts joined, and is waited for again: {}",
                              member.name, lost->why));
  member.last_error = lost->why;
  // Not from inside: the host will be destroyed.
  asio::post(loop_, [this, gone = gone_] {
    if (*gone) return;
    ForgetLost();
    RetryLater();
  });
}

// Waits for it again if it was listed, with a new shell if it had its own.
void Membership::Forget(Member& member) {
  if (Starter* const start = std::exchange(member.start, nullptr)) {
    std::erase(start->members, &member);
    if (start->members.empty()) std::erase_if(starts_, [&](const auto& one) { return one.get() == start; });
  }
  member.host.reset();
  member.introduction.reset();
  member.gathered = false;
}

// Forgets hosts that were lost or are leaving, except those that a controller still uses.
void Membership::ForgetLost() {
  for (auto& member : members_) {
    if (member->host == nullptr || (member->gathered && !joining_hosts_)) continue;
    const int signal = std::exchange(member->leaving, 0);
    if (signal != 0) {
      member->host->Leave(128 + signal, "", {});
      member->hopeless = true;  // until it joins by itself
    }
    if (signal != 0 || member->host->lost()) Forget(*member);
  }
  std::erase_if(members_, [](const auto& member) { return member->host == nullptr && !member->listed; });
}

// Gives up a host that cannot join; this ends a job that needs it. Reported together with others that fail at
// the same time.
void Membership::GiveUp(Member& member, Error error) {
  if (member.hopeless) return;
  member.hopeless = true;
  const bool needed = joining_hosts_ && Wanted() < cluster_.min_hosts;
  if (!needed && member.host != nullptr && !member.host->lost()) {
    member.host->Leave(2, error.text, {});
    member.introduction.reset();
  }
  given_up_.emplace_back(member.name, std::move(error));
  const bool all_known = std::ranges::all_of(
      members_, [](const auto& one) { return !one->listed || one->hopeless || one->there(); });
  if (!joining_hosts_ || all_known) return TellGivenUp();
  if (given_up_.size() > 1) return;
  together_.After(kTogether, [this] { TellGivenUp(); });
}

void Membership::AwaitLastCall() {
  if (call_running_ || There() < cluster_.min_hosts) return;
  call_running_ = true;
  last_call_.After(cluster_.last_call, [this] { called_ = true; });
}

void Membership::AwaitProgress(std::chrono::seconds pause) {
  progress_.After(pause, [this] {
    const std::string line = StatusLine();
    const bool news = line != std::exchange(told_, line);
    const std::string limit = FormatDuration(cluster_.join_timeout);
    if (There() >= cluster_.min_hosts) {
      if (news) services_.say("dtrun: " + line);
    } else if (news) {
      services_.say(fmt::format("dtrun: {}; trying for up to {} (cluster.join_timeout)", line, limit));
    } else {
      const auto waited =
          std::chrono::floor<std::chrono::seconds>(std::chrono::steady_clock::now() - joining_since_);
      services_.say(fmt::format("dtrun: still {} of {} hosts joined after {} of {}", There(),
                                cluster_.hosts.size(), FormatDuration(waited), limit));
    }
    AwaitProgress(kProgressEvery);
  });
}

void Membership::Fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

}  // namespace dtrun::membership
