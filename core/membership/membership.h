// The hosts of a job and how they come together. Opens the control port, starts agents on other hosts or
// waits for agents started elsewhere, and lists the missing hosts after two seconds and then every ten.
//
// Lives for the whole job: a lost host may come back, others may join while the ranks run, and it dismisses
// all hosts in the end. Owned by the root; loop thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/timer.h"
#include "core/membership/cluster.h"
#include "core/membership/remote_host.h"
#include "core/membership/remote_shell.h"
#include "core/plan/hosts.h"
#include "core/process/user_signals.h"
#include "core/protocol/listener.h"

namespace dtrun::membership {

class Membership {
 public:
  // A host that ranks can be started on.
  struct Present {
    plan::HostOffer offer;       // includes its number
    std::string machine;         // its identity
    RemoteHost* host = nullptr;  // null: this machine. Valid until the next Gather
  };

  // The pids of the remote shells are added to `pids`. All references must outlive it.
  Membership(asio::io_context& loop, process::UserSignals& signals, const Cluster& cluster, std::string job,
             std::set<pid_t>& pids, RemoteHost::Services services);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Runs the loop until every host has joined, or cluster.min_hosts of them and no other within
  // cluster.last_call. Returns them in the order of their numbers. Waits again for lost hosts. An error names
  // the host, the cause and the next step; DTRUN_ABORTED if the user ended it.
  Result<std::vector<Present>> Gather();

  // `handler` is called when another host has joined since the last Gather and there is room for it. Called
  // from the loop, not while Gather runs.
  void OnNewcomer(std::function<void(const std::string& host)> handler) { on_newcomer_ = std::move(handler); }

  // For a host that a signal asked to end: whether the job continues without it. The next Gather then
  // releases it.
  bool Release(const RemoteHost& host, int signal);

  // Awaited hosts that have not joined, each with the reason, which may be empty.
  std::vector<std::pair<std::string, std::string>> Missing() const;

  // While Gather runs: how many hosts have joined, which are missing and why. Otherwise empty.
  std::string Joining() const { return joining_hosts_ ? StatusLine() : ""; }

  // Dismisses the agents, with `why` if the job never began, and waits a moment for them.
  void Dismiss(int exit_code, const std::string& why);

  // The signal that ended it, Lifeline::kGuardGone, or 0.
  int interrupted() const { return interrupted_; }

  // For the control port's listener: decides on a host that knows the key, and takes its channel.
  Status Admit(const protocol::Hello& hello, const std::string& from);
  void Join(const protocol::Hello& hello, std::unique_ptr<protocol::Channel> channel);

 private:
  struct Member;
  // A command that starts agents, and the hosts that it is for.
  struct Starter {
    std::string label;  // prefix of its lines
    hosts::StartCommand command;
    std::vector<Member*> members;
    std::unique_ptr<AgentShell> shell;
    std::string last_line;
    std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
    int told = 0;  // lines printed for the user
  };
  // A host that is awaited or has joined.
  struct Member {
    std::string name;     // empty: unknown yet
    int number = -1;      // -1: none yet
    bool listed = false;  // awaited by name or number; otherwise forgotten once lost
    Starter* start = nullptr;
    std::string last_error;
    std::string detour;     // peer of a control link through `start`
    bool hopeless = false;  // it cannot join, and the job does not need it
    std::unique_ptr<RemoteHost> host;
    std::optional<protocol::Introduction> introduction;
    int leaving = 0;        // the signal that asked it to leave
    bool gathered = false;  // returned by the last Gather
    bool there() const { return host != nullptr && introduction && !host->lost(); }
  };

  std::string OnlyAddress() const;  // empty: agents may use any address
  Status Listen();
  void FindOwnNames();
  void CheckAddress();
  void StartMissing();
  void StartAgents(const hosts::StartCommand& command, std::vector<Member*> members);
  void OnNoise(const std::shared_ptr<Starter>& start);
  void OnLine(Starter& start, const std::string& line);
  void OnLink(int host, UniqueFd link, const std::string& from);
  void OnEnded(const std::shared_ptr<Starter>& start, const process::Ending& ending);
  void RetryLater();

  void OnIntroduced(Member& member, const protocol::Introduction& introduction);
  void OnEvent(Member& member, const protocol::Event& event);
  void Forget(Member& member);
  void ForgetLost();
  void GiveUp(Member& member, Error error);
  void TellGivenUp();

  Member* Numbered(int number);
  std::size_t There() const;
  std::size_t Wanted() const;
  bool Enough() const;
  void DealNumbers();
  const std::string* DuplicateOf(const Member& member) const;
  void AwaitLastCall();
  void AwaitProgress(std::chrono::seconds pause);
  void Fail(Error error);
  std::string WhyMissing(const Member& member) const;
  std::string StatusLine() const;
  std::string Where() const;
  std::string UnusedName(const std::string& name) const;

  asio::io_context& loop_;
  process::UserSignals& signals_;
  Cluster cluster_;
  const std::string job_;
  std::set<pid_t>& pids_;
  const RemoteHost::Services services_;
  const std::string key_digits_;
  std::vector<std::string> names_;  // where agents reach this host
  std::unique_ptr<protocol::Listener> listener_;
  std::shared_ptr<void> address_lookup_;  // in progress
  Timer deadline_, progress_, last_call_, retry_, together_;
  std::chrono::nanoseconds pause_{};
  bool retrying_ = false;
  std::vector<std::shared_ptr<Starter>> starts_;
  std::vector<std::unique_ptr<Member>> members_;  // except this machine
  std::function<void(const std::string& host)> on_newcomer_;
  std::vector<std::pair<std::string, Error>> given_up_;  // by host; not reported yet
  std::optional<Error> failure_;
  bool joining_hosts_ = false;
  std::chrono::steady_clock::time_point joining_since_;
  std::string told_;     // last line about missing hosts
  std::string refused_;  // the last connection that was refused, until a host joins
  bool called_ = false;  // the last call is over
  bool call_running_ = false;
  bool dismissed_ = false;
  int interrupted_ = 0;
  const std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);  // for queued handlers
};

}  // namespace dtrun::membership
