// The hosts of a job and how they come together: opens the control port, starts agents on other hosts or
// waits for those that others start, and says after two seconds, and then every ten, who is missing.
//
// Stays for the whole job: a host that was lost may come back, others may join while the ranks run, and it
// says goodbye to all in the end. Owned by the root; loop thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/membership/agent_shell.h"
#include "core/membership/cluster.h"
#include "core/membership/remote_host.h"
#include "core/plan/hosts.h"
#include "core/process/user_signals.h"
#include "core/protocol/listener.h"

namespace dtrun::membership {

class Membership {
 public:
  // A host that ranks can be started on.
  struct Present {
    plan::HostOffer offer;       // with its number
    std::string machine;         // its identity
    RemoteHost* host = nullptr;  // null: this machine. Lives until the next Gather
  };

  // `pids` gets the remote shells. All references outlive it.
  Membership(boost::asio::io_context& loop, process::UserSignals& signals, const Cluster& cluster,
             std::string job, std::set<pid_t>& pids, RemoteHost::Services services);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Runs the loop until every host is there, or cluster.min_hosts of them and nobody else has come for
  // cluster.last_call: in the order of their numbers. Hosts that were lost are awaited anew. An error names
  // the host, the cause and the next step; DTRUN_ABORTED when the user ended it.
  Result<std::vector<Present>> Gather();

  // A host has joined that the hosts gathered last lack, and there is room for it. Called from the loop, not
  // while Gather runs.
  void OnNewcomer(std::function<void(const std::string& host)> handler) { on_newcomer_ = std::move(handler); }

  // A host that was asked to end by a signal: whether the job goes on without it. Then it is let go by the
  // next Gather.
  bool Release(const RemoteHost& host, int signal);

  // Hosts that are awaited and have not joined, each with the reason; that may be empty.
  std::vector<std::pair<std::string, std::string>> Missing() const;

  // Lets the agents go, with `why` when the job never began, and waits a moment for them.
  void Dismiss(int exit_code, const std::string& why);

  // The signal that ended it, Lifeline::kGuardGone, or 0.
  int interrupted() const { return interrupted_; }

  // For the control port's listener: the last word on a host that knows the key, and its channel.
  Status Admit(const protocol::Hello& hello, const std::string& from);
  void Join(const protocol::Hello& hello, std::unique_ptr<protocol::Channel> channel);

 private:
  struct Member;
  // A command that starts agents, and the hosts that it is for.
  struct Starter {
    std::string label;  // before its lines
    hosts::StartCommand command;
    std::vector<Member*> members;
    std::unique_ptr<AgentShell> shell;
    std::string last_line;
    std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
    int told = 0;  // lines that the user got
  };
  // A host that is awaited or has joined.
  struct Member {
    std::string name;     // empty: not known yet
    int number = -1;      // -1: none yet
    bool listed = false;  // awaited by name or number; else it is forgotten when it is lost
    Starter* start = nullptr;
    std::string last_error;
    std::string detour;     // the peer of a control link through `start`
    bool hopeless = false;  // it cannot join, and the job can do without it
    std::unique_ptr<RemoteHost> host;
    std::optional<protocol::Introduction> introduction;
    int leaving = 0;        // the signal that asked it to
    bool gathered = false;  // one of those that Gather returned last
    bool there() const { return host != nullptr && introduction && !host->lost(); }
  };

  std::string OnlyAddress() const;  // empty: agents may come to any
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

  boost::asio::io_context& loop_;
  process::UserSignals& signals_;
  Cluster cluster_;
  const std::string job_;
  std::set<pid_t>& pids_;
  const RemoteHost::Services services_;
  const std::string key_digits_;
  std::vector<std::string> names_;  // where agents reach us
  std::unique_ptr<protocol::Listener> listener_;
  std::shared_ptr<void> address_lookup_;  // under way
  boost::asio::steady_timer deadline_, progress_, last_call_, retry_, together_;
  std::chrono::nanoseconds pause_{};
  bool retrying_ = false;
  std::vector<std::shared_ptr<Starter>> starts_;
  std::vector<std::unique_ptr<Member>> members_;  // but for this machine
  std::function<void(const std::string& host)> on_newcomer_;
  std::vector<std::pair<std::string, Error>> given_up_;  // by host; not told yet
  std::optional<Error> failure_;
  bool joining_hosts_ = false;
  std::chrono::steady_clock::time_point joining_since_;
  std::string told_;     // of the hosts that are missing, last
  bool called_ = false;  // the last call is over
  bool call_running_ = false;
  bool dismissed_ = false;
  int interrupted_ = 0;
  const std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);  // for handlers that are due already
};

}  // namespace dtrun::membership
