#include "core/node/serve.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>

#include "core/base/exhausted.h"
#include "core/base/port_range.h"
#include "core/hosts/this_machine.h"
#include "core/log/log.h"
#include "core/node/agent_link.h"
#include "core/node/agent_stdio.h"
#include "core/node/inheritance.h"
#include "core/plan/hosts.h"
#include "core/process/process.h"
#include "core/process/user_signals.h"
#include "core/protocol/dialer.h"
#include "core/protocol/join_request.h"

namespace dtrun::node {
namespace {

LocalOptions OptionsIn(const process::Lifeline& lifeline) {
  LocalOptions options;
  options.socket_dir = lifeline.runtime_dir();
  options.cgroup = lifeline.runtime_dir().filename().string();
  options.open_files = RaiseOpenFiles();
  return options;
}

constexpr log::Room kAgentLog("node");

class Agent {
 public:
  ~Agent() { log::WriteTo(nullptr, stdio_ && !link_.joined()); }
  explicit Agent(process::Lifeline& lifeline) : signals_(loop_, lifeline), link_(loop_, OptionsIn(lifeline)) {
    signals_.Handle([this](int signal) { OnSignal(signal); });
  }

  int RunFromStdin() {
    stdio_.emplace(loop_, AgentStdio::Handlers{[this](const std::string& line) { OnRequest(line); },
                                               [this] { OnStdinEnd(); }});
    const int code = RunLoop();
    stdio_->Drain();
    return code;
  }

  int Run(const protocol::JoinRequest& request, std::optional<OwnStart> own) {
    if (own) {
      report_.emplace(*std::move(own), OwnEnvironment(), [](const std::string& line) { Complain(line); });
      link_.SetReport(&*report_);
      report_->Joining(request.names.front(), request.port);
    }
    Dial(request);
    return RunLoop();
  }

 private:
  int RunLoop() {
    while (!link_.code() && loop_.run_one() > 0) {
    }
    return link_.code().value_or(AgentLink::kLost);
  }

  void OnRequest(const std::string& line) {
    Result<protocol::JoinRequest> request = protocol::ParseJoinRequest(line);
    if (!request) return link_.Refuse(request.error().text);
    if (!request->nodes.empty()) {
      Result<int> number =
          protocol::NumberAmong(*request, std::getenv(request->node_variable.c_str()), hosts::LeadsHere);
      if (!number) return link_.Refuse(number.error().text);
      request->host = *number;
    }
    if (const auto levels = log::ParseLevels(request->log_levels))
      log::Start({*levels, request->log_json}, hosts::HostName(), std::nullopt);
    // Standard error belongs to the remote shell. Until this host has joined, log lines wait.
    log::WriteTo([](std::string_view) {});
    Dial(*request);
  }

  // From any thread to the loop thread.
  void LogToRoot() {
    log::WriteTo(
        [this](std::string_view line) {
          boost::asio::post(loop_, [this, text = std::string(line)] { link_.Tell(protocol::Logged{text}); });
        },
        true);
  }

  void OnStdinEnd() {
    if (dialer_ != nullptr) return link_.Leave("its remote shell has ended");  // or the root is gone
    link_.Refuse(protocol::ParseJoinRequest("").error().text);
  }

  void Dial(const protocol::JoinRequest& request) {
    const Result<PortRange> ports = ParsePortRange(request.port_range);
    if (!ports) return link_.Refuse(ports.error().text);
    UsePortRange(*ports);
    const char* const launch_node = std::getenv("SLURM_LAUNCH_NODE_IPADDR");
    protocol::Dialer::Options options{
        .names = NearestFirst(request.names, std::getenv("SSH_CONNECTION"), launch_node),
        .port = request.port,
        .hello = {},
        .key = request.key,
        .deadline = request.join_timeout,
        .key_origin = request.key_origin};
    options.hello.job = request.job;
    options.hello.host_index = request.host;
    options.hello.host_name = hosts::HostName();
    options.hello.loss_limit = request.lost_after;
    if (stdio_) options.detour = stdio_->DetourOf(request.host);
    kAgentLog.Info("connecting to the root at {}, port {}", fmt::join(request.names, ", "), request.port);
    dialer_ = protocol::Dialer::Start(
        loop_, std::move(options),
        {[this](const protocol::Welcome& welcome, std::unique_ptr<protocol::Channel> channel) {
           if (report_) report_->Joined(welcome.host_name, channel->peer());
           kAgentLog.Info("joined the root on {} at {}", welcome.host_name, channel->peer());
           link_.Join(std::move(channel));
           if (stdio_) LogToRoot();
         },
         [this](const Error& error) { link_.Refuse(error.text); },
         [this, limit = request.join_timeout](const std::string& line) { Trouble(line, limit); }});
  }

  // A user who started this agent by hand can start the root, or correct its address, meanwhile.
  void Trouble(const std::string& line, Nanoseconds limit) {
    if (stdio_) return Complain(line);
    Complain(fmt::format(
        "{}; trying again, for up to {}: start the root there, or correct its address (--master-addr, "
        "--rdzv-endpoint or cluster.root)",
        line, FormatDuration(limit)));
  }

  void OnSignal(int signal) {
    if (signal == process::Lifeline::kGuardGone)
      return link_.Leave("the first process of its dtrun was killed");
    if (signal == SIGTSTP || signal == SIGCONT || signal == SIGWINCH) return;  // concerns only this terminal
    if (!link_.joined() && process::UserSignals::EndsJob(signal)) return link_.End(128 + signal);
    link_.Tell(protocol::Asked{signal});
  }

  boost::asio::io_context loop_;
  process::UserSignals signals_;
  std::optional<AgentStdio> stdio_;  // if a remote shell started this agent
  std::unique_ptr<protocol::Dialer> dialer_;
  std::optional<UserReport> report_;  // for the user who started it
  AgentLink link_;
};

// Asio throws when the system is out of descriptors or memory.
int RunGuarded(const std::function<int()>& work) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return work();
  } catch (const std::exception& exception) {
    process::KillDescendants(std::chrono::seconds(10));
    Complain(fmt::format("the agent failed: {}", Exhausted(exception)));
    return kUserError;
  }
}

}  // namespace

int ServeFromStdin(process::Lifeline& lifeline) {
  return RunGuarded([&] { return Agent(lifeline).RunFromStdin(); });
}

int Serve(const protocol::JoinRequest& request, std::optional<OwnStart> own, process::Lifeline& lifeline) {
  return RunGuarded([&] { return Agent(lifeline).Run(request, std::move(own)); });
}

}  // namespace dtrun::node
