#include "core/agent/serve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <set>
#include <thread>

#include "core/agent/local_host.h"
#include "core/agent/messages.h"
#include "core/agent/process.h"
#include "core/agent/user_signals.h"
#include "core/control/dialer.h"
#include "core/examination/examination.h"
#include "core/plan/hosts.h"
#include "core/store/relay.h"

namespace dtrun::agent {
namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

constexpr int kUserError = 2;
constexpr int kLost = 1;
// What may wait here to be sent to the root before ranks are read no further.
constexpr std::size_t kMostWaiting = std::size_t{4} << 20;
// A line of a summons is far shorter.
constexpr std::size_t kLongestLine = 1 << 20;

void Complain(const std::string& text) {
  fmt::print(stderr, "dtrun: {}: {}\n", plan::HostName(), text);
  std::fflush(stderr);
}

// Variables that describe a host or a session, not a job: each host keeps its own. In an allocation of Slurm
// that goes for the devices which it gave to the job there.
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

// The root's environment with this host's own variables in the places of the root's.
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

class Agent {
 public:
  explicit Agent(Lifeline& lifeline)
      : signals_(loop_, lifeline),
        stdin_(loop_),
        relay_(loop_, {[this](std::uint32_t client) { Send(ClientOpened{client}); },
                       [this](std::uint32_t client, std::string_view bytes) {
                         Send(ClientData{client, bytes});
                       },
                       [this](std::uint32_t client) { Send(ClientClosed{client}); }}) {
    LocalOptions options;
    options.socket_dir = lifeline.runtime_dir();
    options.memory_dir = lifeline.memory_dir();
    options.serve = [this](store::Socket client) { relay_.Enter(std::move(client)); };
    options.open_files = RaiseOpenFiles();
    options.gate = &gate_;
    host_ = MakeLocalHost(loop_, std::move(options));
    host_->Attach([this](const Event& event) { OnEvent(event); });
    signals_.Handle([this](int signal) { OnSignal(signal); });
  }

  int RunFromStdin() {
    stdin_.assign(::dup(STDIN_FILENO));
    ReadStdin();
    return RunLoop();
  }

  int Run(const Summons& summons) {
    Dial(summons);
    return RunLoop();
  }

 private:
  int RunLoop() {
    while (!code_ && loop_.run_one() > 0) {
    }
    EndExamination();
    channel_.reset();
    return code_.value_or(kLost);
  }

  // The job is over here, whatever still runs: it is killed first.
  void End(int code) {
    if (!ending_) ending_ = code;
    if (!prepared_) {
      code_ = *ending_;
      return;
    }
    host_->Do(Kill{});
  }

  // The root learns the reason here; from the end of the channel it could only guess.
  void Leave(const std::string& why) {
    if (!ending_) Send(Lost{why, true});
    End(kLost);
  }

  void ReadStdin() {
    stdin_.async_wait(Descriptor::wait_read, [this](const boost::system::error_code& error) {
      if (error) return;
      char bytes[4096];
      const ssize_t size = ::read(stdin_.native_handle(), bytes, sizeof bytes);
      if (size < 0 && (errno == EINTR || errno == EAGAIN)) return ReadStdin();
      if (size <= 0) return Leave("its remote shell has ended");  // or the root behind it
      if (dialer_ == nullptr && channel_ == nullptr) {
        line_.append(bytes, static_cast<std::size_t>(size));
        if (const auto end = line_.find('\n'); end != std::string::npos) {
          Result<Summons> summons = ParseSummons(line_.substr(0, end));
          line_.clear();
          if (!summons) return Refuse(summons.error());
          if (!summons->nodes.empty()) {
            Result<int> number = NumberAmong(summons->nodes, std::getenv("SLURMD_NODENAME"));
            if (!number) return Refuse(number.error());
            summons->host = *number;
          }
          Dial(*summons);
        } else if (line_.size() > kLongestLine) {
          return Refuse(ParseSummons(line_).error());
        }
      }
      ReadStdin();
    });
  }

  void Refuse(const Error& error) {
    Complain(error.text);
    End(kUserError);
  }

  void Dial(const Summons& summons) {
    control::Dialer::Options options{.names = summons.names,
                                     .port = summons.port,
                                     .hello = {},
                                     .key = summons.key,
                                     .deadline = summons.join_timeout};
    options.hello.job = summons.job;
    options.hello.host_index = summons.host;
    options.hello.host_name = plan::HostName();
    options.hello.loss_limit = summons.lost_after;
    dialer_ =
        control::Dialer::Start(loop_, std::move(options),
                               {[this](const control::Welcome&, std::unique_ptr<control::Channel> channel) {
                                  Join(std::move(channel));
                                },
                                [this](const Error& error) { Refuse(error); }});
  }

  void Join(std::unique_ptr<control::Channel> channel) {
    channel_ = std::move(channel);
    channel_->Start({[this](std::string_view message) { OnMessage(message); },
                     [this](const control::Loss& loss) { OnLost(loss); }, [this] { gate_.Open(); }});
    const Result<plan::HostOffer> offer = plan::OfferHere();
    if (!offer) return Refuse(offer.error());
    Send(Introduction{offer->name, MachineIdentity(), binding::ToText(offer->topology), offer->gpus});
  }

  void OnMessage(std::string_view message) {
    Result<ToAgent> decoded = DecodeToAgent(message);
    if (!decoded) return Refuse(decoded.error());
    std::visit(
        [this]<class T>(T& given) {
          if constexpr (std::is_same_v<T, ClientData>) {
            relay_.Data(given.client, given.bytes);
          } else if constexpr (std::is_same_v<T, ClientClosed>) {
            relay_.Close(given.client);
          } else if constexpr (std::is_same_v<T, Examine>) {
            StartExamination(std::move(given.question),
                             given.environment.empty() ? given.environment : Localised(given.environment));
          } else if constexpr (std::is_same_v<T, Over>) {
            over_ = true;
            if (!given.why.empty()) Complain("the job was not started: " + given.why);
            End(given.exit_code);
          } else {
            if constexpr (std::is_same_v<T, Prepare>) {
              prepared_ = true;
              given.environment = Localised(given.environment);
            }
            host_->Do(std::move(given));
          }
        },
        *decoded);
  }

  // In a thread of its own: plugins may take seconds, and the root wants a sign of life.
  void StartExamination(std::string question, std::vector<std::string> environment) {
    if (examination_.joinable()) examination_.join();
    examination_ = std::thread([this, question = std::move(question), environment = std::move(environment)] {
      std::string answer = examination::Examine(question, environment);
      boost::asio::post(loop_, [this, answer = std::move(answer)] { Send(Examined{answer}); });
    });
  }

  // Ends it by ending the plugins' processes that it waits for.
  void EndExamination() {
    if (!examination_.joinable()) return;
    KillDescendants(std::chrono::seconds(1));
    examination_.join();
  }

  void OnLost(const control::Loss& loss) {
    if (over_) return;
    Complain(fmt::format("lost the root: {}; ending the ranks of this host", loss.error.text));
    End(kLost);
  }

  void OnEvent(const Event& event) {
    const bool last = std::holds_alternative<Gone>(event) || std::holds_alternative<Refused>(event);
    if (last) prepared_ = false;
    std::visit(
        [this]<class T>(const T& seen) {
          if constexpr (!std::is_same_v<T, Lost>) Send(seen);
        },
        event);
    if (last && ending_) code_ = *ending_;
  }

  void OnSignal(int signal) {
    if (signal == Lifeline::kGuardGone) return Leave("the first process of its dtrun was killed");
    if (signal == SIGTSTP || signal == SIGCONT || signal == SIGWINCH) return;  // of this terminal only
    if (channel_ == nullptr && UserSignals::EndsJob(signal)) return End(128 + signal);
    Send(Asked{signal});
  }

  void Send(const ToRoot& message) {
    if (channel_ == nullptr) return;
    channel_->Send(Encode(message));
    if (channel_->queued_bytes() > kMostWaiting) gate_.Close();
  }

  boost::asio::io_context loop_;
  UserSignals signals_;
  Descriptor stdin_;
  std::string line_;
  std::unique_ptr<control::Dialer> dialer_;
  std::unique_ptr<control::Channel> channel_;
  store::Relay relay_;
  OutputGate gate_;
  std::unique_ptr<Host> host_;
  std::thread examination_;
  bool prepared_ = false;  // something may run here
  bool over_ = false;
  std::optional<int> ending_;  // the exit code once nothing runs here
  std::optional<int> code_;
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

int Serve(const Summons& summons, Lifeline& lifeline) {
  return Guard([&] { return Agent(lifeline).Run(summons); });
}

}  // namespace dtrun::agent
