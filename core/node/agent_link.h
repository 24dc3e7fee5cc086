// The agent's end of its channel: checks what the root says (core/protocol/protocol.h), has the host carry it
// out, and tells the root what comes of it.
//
// Owned by the agent (core/node/serve.h); loop thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/asio.h"
#include "core/node/local_host.h"
#include "core/node/user_report.h"
#include "core/process/output_gate.h"
#include "core/protocol/channel.h"
#include "core/protocol/messages.h"
#include "core/protocol/protocol.h"
#include "core/store/relay.h"

namespace dtrun::node {

class AgentLink {
 public:
  static constexpr int kLost = 1;

  // `options` of the host; who serves the store's clients, and the gate of the output, are set here.
  AgentLink(boost::asio::io_context& loop, LocalOptions options);
  // Ends an preflight that is under way, with the processes that it has started.
  ~AgentLink();
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  // Told of what happens here from now on; outlives this. Null: nobody listens.
  void SetReport(UserReport* report) { report_ = report; }

  // The root has let us in. Once.
  void Join(std::unique_ptr<protocol::Channel> channel);
  bool joined() const { return channel_ != nullptr; }

  void Tell(const protocol::ToRoot& message);
  // The job is over here, whatever still runs: that is killed first. Of two codes the first counts.
  void End(int code);
  // The same, and the root learns the reason here; from the end of the channel it could only guess.
  void Leave(const std::string& why);
  // The same, for a reason that the user of this host reads.
  void Refuse(const std::string& why);

  // The exit code, once nothing runs here any more.
  std::optional<int> code() const { return code_; }

 private:
  void OnMessage(std::string_view message);
  void CarryOut(protocol::ToAgent message);
  void TellDifferences(const protocol::Prepare& prepare);
  void OnLost(const protocol::Loss& loss);
  void OnEvent(const protocol::Event& event);
  void StartPreflight(std::string request, std::vector<std::string> environment);

  boost::asio::io_context& loop_;
  UserReport* report_ = nullptr;
  std::unique_ptr<protocol::Channel> channel_;
  protocol::Protocol protocol_;
  store::Relay relay_;
  process::OutputGate gate_;
  std::unique_ptr<protocol::Host> host_;
  std::thread preflight_;
  bool prepared_ = false;  // something may run here
  bool over_ = false;
  std::optional<int> ending_;  // the exit code once nothing runs here
  std::optional<int> code_;
};

// One line of this host for the user, on stderr.
void Complain(const std::string& text);

}  // namespace dtrun::node
