// A remote host: its agent at the other end of a channel.
//
// Made by the membership when the agent joins, and owned by it; loop thread. Commands become messages, and
// messages become events. The store here serves clients of the store there. The host counts as lost if its
// agent breaks the protocol (core/protocol/protocol.h), does not answer, or does not end its ranks when told
// to.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/timer.h"
#include "core/protocol/channel.h"
#include "core/protocol/host.h"
#include "core/protocol/messages.h"
#include "core/protocol/protocol.h"
#include "core/store/relay.h"

namespace dtrun::membership {

class RemoteHost final : public protocol::Host {
 public:
  // What the root provides for every remote host.
  struct Services {
    std::vector<std::string> environment;         // inherited by ranks
    std::function<void(store::Socket)> serve;     // handles a client of the store
    std::function<void(const std::string&)> say;  // prints a line for the user
    // Limit from Kill to Gone. The host itself tries SIGKILL twice for ten seconds (core/node/local_host.cc).
    std::chrono::nanoseconds kill_limit = std::chrono::seconds(30);
    // Limit from any other request to its answer. Plugins may look for devices for a minute or two.
    std::chrono::nanoseconds answer_limit = std::chrono::minutes(5);
  };

  // `services` must outlive it. `introduced` is called once, when the agent has described its host.
  RemoteHost(asio::io_context& loop, std::string name, std::unique_ptr<protocol::Channel> channel,
             const Services& services, std::function<void(const protocol::Introduction&)> introduced);

  ~RemoteHost() override { *ended_ = true; }

  void Do(const protocol::Command& command) override;

  // Marks the host as unreachable; the event follows. The first reason counts.
  void Lose(const std::string& why, bool agent_died, const std::string& next = {});
  // Sends the agent a request of core/preflight; `done` gets the answer, or the loss of the host. Only while
  // no generation runs, one at a time.
  using PreflightDone = std::function<void(Result<preflight::Answer> answer)>;
  void RunPreflight(const preflight::Request& request, PreflightDone done);
  void ForgetPreflight() { preflight_done_ = {}; }

  // Tells the agent to leave, with `why` if the job never began; `done` once it has received that.
  void Leave(int exit_code, const std::string& why, std::function<void()> done);

  const std::string& name() const { return name_; }
  bool lost() const { return lost_; }
  // Whether it was lost because its agent or its guard was killed, or the connection broke.
  bool broke() const { return broke_; }
  // The numeric address of the agent's end of the connection.
  std::string Address() const;
  const std::string& peer() const { return channel_->peer(); }

 private:
  void OnMessage(std::string_view message);
  void Send(const protocol::ToAgent& message);
  void OpenClient(std::uint32_t client);
  // Calls `late` if `due` still holds after `limit`.
  static void Limit(Timer& timer, std::chrono::nanoseconds limit, const bool& due,
                    std::function<void()> late);
  void AwaitAnswer();
  void AwaitEnd();
  void HasEnded();
  // Drops an agent that is reachable but unusable.
  void Drop(const std::string& why, const std::string& next);

  asio::io_context& loop_;
  const std::string name_;
  std::unique_ptr<protocol::Channel> channel_;
  const Services& services_;
  std::function<void(const protocol::Introduction&)> introduced_;
  protocol::Protocol protocol_;
  std::optional<store::Relay> relay_;
  Timer answer_timer_, kill_timer_;
  bool waiting_ = false;  // for an answer
  PreflightDone preflight_done_;
  bool lost_ = false, broke_ = false;
  bool leaving_ = false;
  bool killing_ = false;  // it was told to kill and has not confirmed
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for queued handlers
};

// "10.0.0.7" for "10.0.0.7:5555", "fe80::1%2" for "[fe80::1%2]:5555".
std::string AddressOf(const std::string& endpoint);

}  // namespace dtrun::membership
