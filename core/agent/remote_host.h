// A host elsewhere: its agent at the other end of a channel, reached through a remote shell
// or come by itself.
//
// Owned by the root; loop thread. Commands become messages and messages become events; clients
// of the store there are served by the store here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/host.h"
#include "core/agent/messages.h"
#include "core/agent/remote_shell.h"
#include "core/control/channel.h"
#include "core/store/relay.h"

namespace dtrun::agent {

class RemoteHost final : public Host {
 public:
  // `environment` is what its ranks inherit; `serve` gets clients of the store.
  RemoteHost(boost::asio::io_context& loop, std::string name, std::unique_ptr<control::Channel> channel,
             std::unique_ptr<RemoteShell> shell, std::vector<std::string> environment,
             std::function<void(store::Socket)> serve, std::function<void(const std::string& line)> say);

  void Do(const Command& command) override;
  // What the channel brings: its owner before this one has set the handlers.
  void OnMessage(std::string_view message);
  void OnLost(const control::Loss& loss);

  // Asks the agent a question of core/examination; `done` gets the answer, or the loss of the host.
  // Before the host is attached, one at a time.
  using ExaminationDone = std::function<void(Result<std::string> answer)>;
  void Examine(const std::string& question, ExaminationDone done);
  void ForgetExamination() { examination_done_ = {}; }

  // Tells the agent to leave, and why when the job never began; `done` once it has heard.
  void Leave(int exit_code, const std::string& why, std::function<void()> done);
  bool lost() const { return lost_; }
  // Whether its remote shell still lives.
  bool attached() const { return shell_ != nullptr && shell_->living(); }
  // Numeric address that the agent's connection comes from.
  std::string Address() const;

 private:
  void Lose(const std::string& why, bool agent_died);

  boost::asio::io_context& loop_;
  const std::string name_;
  std::unique_ptr<control::Channel> channel_;
  std::unique_ptr<RemoteShell> shell_;
  std::vector<std::string> environment_;
  std::function<void(store::Socket)> serve_;
  std::function<void(const std::string& line)> say_;
  std::optional<store::Relay> relay_;
  ExaminationDone examination_done_;
  std::string last_line_;  // of the shell
  bool lost_ = false;
  bool leaving_ = false;
};

// "10.0.0.7" of "10.0.0.7:5555", "fe80::1%2" of "[fe80::1%2]:5555".
std::string AddressOf(const std::string& endpoint);

}  // namespace dtrun::agent
