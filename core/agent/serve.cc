#include "core/agent/serve.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>

#include "core/agent/agent_link.h"
#include "core/agent/agent_stdio.h"
#include "core/agent/join_request.h"
#include "core/agent/process.h"
#include "core/agent/user_signals.h"
#include "core/base/port_range.h"
#include "core/cluster/this_machine.h"
#include "core/control/dialer.h"
#include "core/plan/hosts.h"

namespace dtrun::agent {
namespace {

LocalOptions OptionsIn(const Lifeline& lifeline) {
  LocalOptions options;
  options.socket_dir = lifeline.runtime_dir();
  options.cgroup = lifeline.runtime_dir().filename().string();
  options.open_files = RaiseOpenFiles();
  return options;
}

class Agent {
 public:
  explicit Agent(Lifeline& lifeline) : signals_(loop_, lifeline), link_(loop_, OptionsIn(lifeline)) {
    signals_.Handle([this](int signal) { OnSignal(signal); });
  }

  int RunFromStdin() {
    stdio_.emplace(loop_, AgentStdio::Handlers{[this](const std::string& line) { OnRequest(line); },
                                               [this] { OnStdinEnd(); }});
    const int code = RunLoop();
    stdio_->Drain();
    return code;
  }

  int Run(const JoinRequest& request) {
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
    Result<JoinRequest> request = ParseJoinRequest(line);
    if (!request) return link_.Refuse(request.error().text);
    if (!request->nodes.empty()) {
      Result<int> number = NumberAmong(request->nodes, std::getenv("SLURMD_NODENAME"));
      if (!number) return link_.Refuse(number.error().text);
      request->host = *number;
    }
    Dial(*request);
  }

  void OnStdinEnd() {
    if (dialer_ != nullptr) return link_.Leave("its remote shell has ended");  // or the root behind it
    link_.Refuse(ParseJoinRequest("").error().text);
  }

  void Dial(const JoinRequest& request) {
    const Result<PortRange> ports = ParsePortRange(request.port_range);
    if (!ports) return link_.Refuse(ports.error().text);
    UsePortRange(*ports);
    const char* const launch_node = std::getenv("SLURM_LAUNCH_NODE_IPADDR");
    control::Dialer::Options options{
        .names = NearestFirst(request.names, std::getenv("SSH_CONNECTION"), launch_node),
        .port = request.port,
        .hello = {},
        .key = request.key,
        .deadline = request.join_timeout,
        .key_origin = request.key_origin};
    options.hello.job = request.job;
    options.hello.host_index = request.host;
    options.hello.host_name = cluster::HostName();
    options.hello.loss_limit = request.lost_after;
    if (stdio_) options.detour = stdio_->DetourOf(request.host);
    dialer_ =
        control::Dialer::Start(loop_, std::move(options),
                               {[this](const control::Welcome&, std::unique_ptr<control::Channel> channel) {
                                  link_.Join(std::move(channel));
                                },
                                [this](const Error& error) { link_.Refuse(error.text); },
                                [](const std::string& line) { Complain(line); }});
  }

  void OnSignal(int signal) {
    if (signal == Lifeline::kGuardGone) return link_.Leave("the first process of its dtrun was killed");
    if (signal == SIGTSTP || signal == SIGCONT || signal == SIGWINCH) return;  // of this terminal only
    if (!link_.joined() && UserSignals::EndsJob(signal)) return link_.End(128 + signal);
    link_.Tell(Asked{signal});
  }

  boost::asio::io_context loop_;
  UserSignals signals_;
  std::optional<AgentStdio> stdio_;  // of one that a remote shell has started
  std::unique_ptr<control::Dialer> dialer_;
  AgentLink link_;
};

// Asio throws when the system is out of descriptors or memory.
int Guard(const std::function<int()>& work) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return work();
  } catch (const std::exception& exception) {
    KillDescendants(std::chrono::seconds(10));
    Complain(fmt::format("the agent failed: {}; look at `ulimit -a`", exception.what()));
    return kUserError;
  }
}

}  // namespace

int ServeFromStdin(Lifeline& lifeline) {
  return Guard([&] { return Agent(lifeline).RunFromStdin(); });
}

int Serve(const JoinRequest& request, Lifeline& lifeline) {
  return Guard([&] { return Agent(lifeline).Run(request); });
}

}  // namespace dtrun::agent
