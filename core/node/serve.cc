#include "core/node/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>

#include "core/base/endpoint.h"
#include "core/base/error.h"
#include "core/base/standard_output.h"
#include "core/base/visit.h"
#include "core/hosts/this_machine.h"
#include "core/log/log.h"
#include "core/node/agent_stdio.h"
#include "core/node/inheritance.h"
#include "core/output/display.h"
#include "core/plan/hosts.h"
#include "core/preflight/preflight.h"
#include "core/process/process.h"
#include "core/process/user_signals.h"
#include "core/protocol/dialer.h"
#include "core/protocol/hello.h"

namespace dtrun::node {
namespace {

// Bytes queued for the root above which the ranks' output is not read.
constexpr std::size_t kMostWaiting = std::size_t{4} << 20;

// Variables that describe a host or a session, not a job: each host keeps its own. In a Slurm allocation this
// includes the devices that Slurm gave to the job there.
bool BelongsToHost(std::string_view name) {
  constexpr std::string_view kNames[] = {"HOSTNAME", "HOST", "XDG_RUNTIME_DIR", "DISPLAY",
                                         "DBUS_SESSION_BUS_ADDRESS"};
  constexpr std::string_view kOfSlurm[] = {
      "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
      "GPU_DEVICE_ORDINAL",   "SLURM_JOB_GPUS",       "SLURM_GPUS_ON_NODE",
      "SLURM_CPUS_ON_NODE",   "SLURM_TOPOLOGY_ADDR",  "SLURMD_NODENAME"};
  static const bool allocated = std::getenv("SLURM_JOB_ID") != nullptr;
  const auto is = [&](std::string_view known) { return name == known; };
  return std::ranges::any_of(kNames, is) || (allocated && std::ranges::any_of(kOfSlurm, is)) ||
         name.starts_with("SSH_") || name.starts_with("XDG_SESSION_");
}

// The root's environment, with this host's own values for host-specific variables.
std::vector<std::string> Localised(const std::vector<std::string>& image) {
  std::vector<std::string> out;
  auto name = [](const std::string& entry) { return std::string_view(entry).substr(0, entry.find('=')); };
  for (const std::string& entry : image) {
    if (!BelongsToHost(name(entry))) out.push_back(entry);
  }
  for (const std::string& entry : OwnEnvironment()) {
    if (BelongsToHost(name(entry))) out.push_back(entry);
  }
  return out;
}

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
          asio::post(loop_, [this, text = std::string(line)] { link_.Tell(protocol::Logged{text}); });
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

  asio::io_context loop_;
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

void Complain(const std::string& text) {
  PrintMessage("dtrun: {}: {}\n", hosts::HostName(), output::TamedMessage(text));
  std::fflush(stderr);
}

AgentLink::AgentLink(asio::io_context& loop, LocalOptions options)
    : loop_(loop),
      relay_(loop, {[this](std::uint32_t client) { Tell(protocol::ClientOpened{client}); },
                    [this](std::uint32_t client, std::string_view bytes) {
                      Tell(protocol::ClientData{client, bytes});
                    },
                    [this](std::uint32_t client) { Tell(protocol::ClientClosed{client}); }}) {
  options.serve = [this](store::Socket client) { relay_.Enter(std::move(client)); };
  options.gate = &gate_;
  host_ = MakeLocalHost(loop_, std::move(options));
  host_->Attach([this](const protocol::Event& event) { OnEvent(event); });
}

AgentLink::~AgentLink() {
  if (!preflight_.joinable()) return;
  process::KillDescendants(std::chrono::seconds(1));  // the plugin processes that it waits for
  preflight_.join();
}

void AgentLink::Join(std::unique_ptr<protocol::Channel> channel) {
  channel_ = std::move(channel);
  channel_->Start({[this](std::string_view message) { OnMessage(message); },
                   [this](const protocol::Loss& loss) { OnLost(loss); }, [this] { gate_.Open(); }});
  const Result<plan::HostOffer> offer = plan::OfferHere();
  if (!offer) return Refuse(offer.error().text);
  Tell(protocol::Introduction{offer->name, hosts::MachineIdentity(), binding::ToText(offer->topology),
                              offer->gpus});
}

void AgentLink::Tell(const protocol::ToRoot& message) {
  if (channel_ == nullptr) return;
  protocol_.Note(message);
  channel_->Send(Encode(message));
  if (channel_->queued_bytes() > kMostWaiting) gate_.Close();
}

void AgentLink::End(int code) {
  if (!ending_) ending_ = code;
  if (!prepared_) {
    code_ = *ending_;
    return;
  }
  host_->Do(protocol::Kill{});
}

void AgentLink::Leave(const std::string& why) {
  if (!ending_) Tell(protocol::Lost{why, true});
  End(kLost);
}

void AgentLink::Refuse(const std::string& why) {
  Complain(why);
  if (!ending_) Tell(protocol::Lost{why, true, {}, true});
  End(kUserError);
}

void AgentLink::OnMessage(std::string_view message) {
  if (ending_) return;  // the root may not know that yet
  Result<protocol::ToAgent> decoded = protocol::DecodeToAgent(message);
  const Result<bool> valid = decoded ? protocol_.Check(*decoded) : Result<bool>(decoded.error());
  if (!valid) return Refuse("cannot carry out the root's request: " + valid.error().text);
  if (*valid) CarryOut(*std::move(decoded));
}

void AgentLink::CarryOut(protocol::ToAgent message) {
  Visit(
      [this]<class T>(T& given) {
        if constexpr (std::is_same_v<T, protocol::ClientData>) {
          relay_.Data(given.client, given.bytes);
        } else if constexpr (std::is_same_v<T, protocol::ClientClosed>) {
          relay_.Close(given.client);
        } else if constexpr (std::is_same_v<T, protocol::RunPreflight>) {
          StartPreflight(std::move(given.request),
                         given.environment.empty() ? given.environment : Localised(given.environment));
        } else if constexpr (std::is_same_v<T, protocol::Over>) {
          over_ = true;
          if (!given.why.empty()) Complain("the job was not started: " + given.why);
          if (report_ != nullptr) report_->Over();
          End(given.exit_code);
        } else {
          if constexpr (std::is_same_v<T, protocol::Prepare>) {
            prepared_ = true;
            given.environment = Localised(given.environment);
            TellDifferences(given);
          }
          if constexpr (std::is_same_v<T, protocol::Start>) {
            if (report_ != nullptr) report_->Started(given);
          }
          host_->Do(std::move(given));
        }
      },
      message);
}

// Reports here and on the root: their users may be different people.
void AgentLink::TellDifferences(const protocol::Prepare& prepare) {
  if (report_ == nullptr) return;
  for (const std::string& difference : report_->Prepared(prepare)) {
    Complain("note: " + difference);
    Tell(protocol::Said{fmt::format("dtrun: note from {}: {}", hosts::HostName(), difference)});
  }
}

// Uses its own thread: plugins may take seconds, and the root needs heartbeats.
void AgentLink::StartPreflight(preflight::Request request, std::vector<std::string> environment) {
  if (preflight_.joinable()) preflight_.join();
  preflight_ = std::thread([this, request = std::move(request), environment = std::move(environment)] {
    preflight::Answer answer = preflight::RunPreflight(request, environment);
    asio::post(loop_, [this, answer = std::move(answer)] { Tell(protocol::PreflightAnswered{answer}); });
  });
}

void AgentLink::OnLost(const protocol::Loss& loss) {
  if (over_) return;
  Complain(
      fmt::format("lost the connection to the root: {}; ending the ranks on this host", loss.error.text));
  End(kLost);
}

void AgentLink::OnEvent(const protocol::Event& event) {
  const bool last =
      std::holds_alternative<protocol::Gone>(event) || std::holds_alternative<protocol::Refused>(event);
  if (last) prepared_ = false;
  if (const auto* ended = std::get_if<protocol::Ended>(&event); ended != nullptr && report_ != nullptr)
    report_->Ended(*ended);
  Visit(
      [this]<class T>(const T& seen) {
        if constexpr (!std::is_same_v<T, protocol::Lost>) Tell(seen);
      },
      event);
  if (last && ending_) code_ = *ending_;
}

int ServeFromStdin(process::Lifeline& lifeline) {
  return RunGuarded([&] { return Agent(lifeline).RunFromStdin(); });
}

int Serve(const protocol::JoinRequest& request, std::optional<OwnStart> own, process::Lifeline& lifeline) {
  return RunGuarded([&] { return Agent(lifeline).Run(request, std::move(own)); });
}

}  // namespace dtrun::node
