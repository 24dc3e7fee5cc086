// A host elsewhere: its agent at the other end of a channel.
//
// Made by the muster when the agent joins, and owned by it; loop thread. Commands become messages and
// messages become events; clients of the store there are served by the store here.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/host.h"
#include "core/agent/messages.h"
#include "core/control/channel.h"
#include "core/store/relay.h"

namespace dtrun::agent {

class RemoteHost final : public Host {
 public:
  // What the root gives to every host elsewhere.
  struct Services {
    std::vector<std::string> environment;         // what ranks inherit
    std::function<void(store::Socket)> serve;     // takes a client of the store
    std::function<void(const std::string&)> say;  // a line for the user
  };

  // `services` outlives it. `introduced` is called once, when the agent has said what its host is.
  RemoteHost(boost::asio::io_context& loop, std::string name, std::unique_ptr<control::Channel> channel,
             const Services& services, std::function<void(const Introduction&)> introduced);

  void Do(const Command& command) override;

  // It cannot be reached any more, as its owner knows; the event follows. Of two reasons the first counts.
  void Lose(const std::string& why, bool agent_died);
  // Asks the agent a question of core/examination; `done` gets the answer, or the loss of the host.
  // While no generation runs, one at a time.
  using ExaminationDone = std::function<void(Result<std::string> answer)>;
  void Examine(const std::string& question, ExaminationDone done);
  void ForgetExamination() { examination_done_ = {}; }

  // Tells the agent to leave, and why when the job never began; `done` once it has heard.
  void Leave(int exit_code, const std::string& why, std::function<void()> done);

  const std::string& name() const { return name_; }
  bool lost() const { return lost_; }
  // Numeric address that the agent's connection comes from.
  std::string Address() const;
  const std::string& peer() const { return channel_->peer(); }

 private:
  void OnMessage(std::string_view message);
  void OnLost(const control::Loss& loss);

  const std::string name_;
  std::unique_ptr<control::Channel> channel_;
  const Services& services_;
  std::function<void(const Introduction&)> introduced_;
  std::optional<store::Relay> relay_;
  ExaminationDone examination_done_;
  bool lost_ = false;
  bool leaving_ = false;
};

// "10.0.0.7" of "10.0.0.7:5555", "fe80::1%2" of "[fe80::1%2]:5555".
std::string AddressOf(const std::string& endpoint);

}  // namespace dtrun::agent
