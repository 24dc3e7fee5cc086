// Brings the hosts of a job together: opens the control port, starts an agent on every other
// host or waits for those that others start, and says every ten seconds who is missing.
//
// Owned by the root; loop thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/agent/cluster.h"
#include "core/agent/messages.h"
#include "core/agent/remote_shell.h"
#include "core/agent/user_signals.h"
#include "core/control/listener.h"

namespace dtrun::agent {

// An agent that has joined and said what its host is.
struct JoinedHost {
  Introduction introduction;
  std::unique_ptr<control::Channel> channel;
  std::unique_ptr<RemoteShell> shell;  // null when it came by itself
};

class Muster {
 public:
  using Say = std::function<void(const std::string& line)>;
  // What came over the channel of a host, for whoever takes it over. Before that: nothing.
  struct Sinks {
    std::function<void(std::size_t host, std::string_view message)> on_message;
    std::function<void(std::size_t host, const control::Loss& loss)> on_lost;
  };

  // `pids` gets the remote shells. All references outlive it; `sinks` are called for as long as
  // the channels live.
  Muster(boost::asio::io_context& loop, UserSignals& signals, const Cluster& cluster, std::string job,
         std::set<pid_t>& pids, Say say, Sinks sinks);
  ~Muster();

  // Runs the loop until every other host has joined: by host, empty for `cluster.here`. An
  // error names the host, the cause and the next step; DTRUN_ABORTED when the user ended it.
  Result<std::vector<JoinedHost>> Run();
  // The signal that ended it, Lifeline::kGuardGone, or 0.
  int interrupted() const { return interrupted_; }

 private:
  struct Member {
    std::string name;
    bool joined = false;
    bool introduced = false;
    std::string last_error;
    std::chrono::nanoseconds pause{};
    std::unique_ptr<boost::asio::steady_timer> retry;
    JoinedHost host;
  };

  Status Listen();
  void StartShell(std::size_t host);
  void OnShellEnded(std::size_t host, const Ending& ending);
  Status Admit(const control::Hello& hello, const std::string& from);
  void OnJoined(const control::Hello& hello, std::unique_ptr<control::Channel> channel);
  void OnMessage(std::size_t host, std::string_view message);
  void OnLost(std::size_t host, const control::Loss& loss);
  void AwaitProgress();
  void Fail(Error error);
  bool Complete() const;
  std::string StatusLine() const;

  boost::asio::io_context& loop_;
  UserSignals& signals_;
  const Cluster& cluster_;
  const std::string job_;
  std::set<pid_t>& pids_;
  Say say_;
  Sinks sinks_;
  const std::string key_digits_;
  std::vector<std::string> names_;
  std::unique_ptr<control::Listener> listener_;
  boost::asio::steady_timer deadline_, progress_;
  std::vector<Member> members_;
  std::optional<Error> failure_;
  int interrupted_ = 0;
  bool over_ = false;
  const std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);  // for handlers that are due already
};

}  // namespace dtrun::agent
