// A host elsewhere: its agent at the other end of a channel.
//
// Made by the membership when the agent joins, and owned by it; loop thread. Commands become messages and
// messages become events; clients of the store there are served by the store here. An agent that breaks
// the protocol (core/protocol/protocol.h), does not answer or does not end its ranks when it is told to, is a
// lost host.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/protocol/channel.h"
#include "core/protocol/host.h"
#include "core/protocol/messages.h"
#include "core/protocol/protocol.h"
#include "core/store/relay.h"

namespace dtrun::membership {

class RemoteHost final : public protocol::Host {
 public:
  // What the root gives to every host elsewhere.
  struct Services {
    std::vector<std::string> environment;         // what ranks inherit
    std::function<void(store::Socket)> serve;     // takes a client of the store
    std::function<void(const std::string&)> say;  // a line for the user
    // From Kill to Gone. The host itself gives SIGKILL twice ten seconds (core/node/local_host.cc).
    std::chrono::nanoseconds kill_limit = std::chrono::seconds(30);
    // From any other request to its answer. Plugins may look for devices for a minute or two.
    std::chrono::nanoseconds answer_limit = std::chrono::minutes(5);
  };

  // `services` outlives it. `introduced` is called once, when the agent has said what its host is.
  RemoteHost(boost::asio::io_context& loop, std::string name, std::unique_ptr<protocol::Channel> channel,
             const Services& services, std::function<void(const protocol::Introduction&)> introduced);

  ~RemoteHost() override { *ended_ = true; }

  void Do(const protocol::Command& command) override;

  // It cannot be reached any more, as its owner knows; the event follows. Of two reasons the first counts.
  void Lose(const std::string& why, bool agent_died, const std::string& next = {});
  // Asks the agent a request of core/preflight; `done` gets the answer, or the loss of the host.
  // While no generation runs, one at a time.
  using PreflightDone = std::function<void(Result<std::string> answer)>;
  void RunPreflight(const std::string& request, PreflightDone done);
  void ForgetPreflight() { preflight_done_ = {}; }

  // Tells the agent to leave, and why when the job never began; `done` once it has heard.
  void Leave(int exit_code, const std::string& why, std::function<void()> done);

  const std::string& name() const { return name_; }
  bool lost() const { return lost_; }
  // Numeric address that the agent's connection comes from.
  std::string Address() const;
  const std::string& peer() const { return channel_->peer(); }

 private:
  void OnMessage(std::string_view message);
  void OnLost(const protocol::Loss& loss);
  void Send(const protocol::ToAgent& message);
  void OpenClient(std::uint32_t client);
  // Calls `late` when `due` still holds after `limit`.
  void Limit(boost::asio::steady_timer& timer, std::chrono::nanoseconds limit, const bool& due,
             std::function<void()> late);
  void AwaitAnswer();
  void AwaitEnd();
  void HasEnded();
  // Lets go of an agent that is there but cannot be worked with.
  void Drop(const std::string& why, const std::string& next);

  boost::asio::io_context& loop_;
  const std::string name_;
  std::unique_ptr<protocol::Channel> channel_;
  const Services& services_;
  std::function<void(const protocol::Introduction&)> introduced_;
  protocol::Protocol protocol_;
  std::optional<store::Relay> relay_;
  boost::asio::steady_timer answer_timer_, kill_timer_;
  bool waiting_ = false;  // for an answer
  PreflightDone preflight_done_;
  bool lost_ = false;
  bool leaving_ = false;
  bool killing_ = false;  // it was told to, and has not said that it did
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for what the loop has to do yet
};

// "10.0.0.7" of "10.0.0.7:5555", "fe80::1%2" of "[fe80::1%2]:5555".
std::string AddressOf(const std::string& endpoint);

}  // namespace dtrun::membership
