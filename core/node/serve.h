// The agent of a host other than the root's: joins its root and follows its commands until the job is over or
// the root is lost. Owns its loop; runs on the agent's main thread.
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
#include "core/process/lifeline.h"
#include "core/process/output_pipe.h"
#include "core/protocol/channel.h"
#include "core/protocol/hello.h"
#include "core/protocol/messages.h"
#include "core/protocol/protocol.h"
#include "core/store/relay.h"

namespace dtrun::node {

// The agent's end of its channel: checks the root's messages (core/protocol/protocol.h), lets the host
// execute them, and reports the results to the root.
//
// Owned by the agent (core/node/serve.h); loop thread.
class AgentLink {
 public:
  static constexpr int kLost = 1;

  // `options` of the host. The handler for store clients and the output gate are set here.
  AgentLink(asio::io_context& loop, LocalOptions options);
  // Ends a preflight in progress, with the processes that it has started.
  ~AgentLink();
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  // Sets the report that receives this host's events from now on. It must outlive this object. Null: none.
  void SetReport(UserReport* report) { report_ = report; }

  // The root has accepted this agent. Call once.
  void Join(std::unique_ptr<protocol::Channel> channel);
  bool joined() const { return channel_ != nullptr; }

  void Tell(const protocol::ToRoot& message);
  // Ends the job on this host; kills what still runs first. The first exit code counts.
  void End(int code);
  // The same, and sends the root the reason; from the end of the channel it could only guess.
  void Leave(const std::string& why);
  // The same, and prints the reason for the user of this host.
  void Refuse(const std::string& why);

  // The exit code, set once nothing runs here any more.
  std::optional<int> code() const { return code_; }

 private:
  void OnMessage(std::string_view message);
  void CarryOut(protocol::ToAgent message);
  void TellDifferences(const protocol::Prepare& prepare);
  void OnLost(const protocol::Loss& loss);
  void OnEvent(const protocol::Event& event);
  void StartPreflight(preflight::Request request, std::vector<std::string> environment);

  asio::io_context& loop_;
  UserReport* report_ = nullptr;
  std::unique_ptr<protocol::Channel> channel_;
  protocol::Protocol protocol_;
  store::Relay relay_;
  process::OutputGate gate_;
  std::unique_ptr<protocol::Host> host_;
  std::thread preflight_;
  bool prepared_ = false;  // processes may run here
  bool over_ = false;
  std::optional<int> ending_;  // the exit code once nothing runs here
  std::optional<int> code_;
};

// Prints one line of this host for the user on stderr.
void Complain(const std::string& text);

// Reads the request from stdin. The end of stdin then means that this agent is no longer needed. Returns the
// exit code. REQUIRES: called by the work of Guarded.
int ServeFromStdin(process::Lifeline& lifeline);

// The same with a request from this host's user; stdin has no meaning. The user gets a report of events here,
// but only of problems if `own` is not set.
int Serve(const protocol::JoinRequest& request, std::optional<OwnStart> own, process::Lifeline& lifeline);

}  // namespace dtrun::node
