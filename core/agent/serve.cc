#include "core/agent/serve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>

#include "core/agent/agent_link.h"
#include "core/agent/process.h"
#include "core/agent/user_signals.h"
#include "core/control/dialer.h"
#include "core/plan/hosts.h"

namespace dtrun::agent {
namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

// A line of a summons is far shorter.
constexpr std::size_t kLongestLine = 1 << 20;

LocalOptions OptionsIn(const Lifeline& lifeline) {
  LocalOptions options;
  options.socket_dir = lifeline.runtime_dir();
  options.memory_dir = lifeline.memory_dir();
  options.cgroup = lifeline.runtime_dir().filename().string();
  options.open_files = RaiseOpenFiles();
  return options;
}

class Agent {
 public:
  explicit Agent(Lifeline& lifeline)
      : signals_(loop_, lifeline), stdin_(loop_), link_(loop_, OptionsIn(lifeline)) {
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
    while (!link_.code() && loop_.run_one() > 0) {
    }
    return link_.code().value_or(AgentLink::kLost);
  }

  void ReadStdin() {
    stdin_.async_wait(Descriptor::wait_read, [this](const boost::system::error_code& error) {
      // A file or /dev/null cannot be waited for, and need not be.
      if (error && error != boost::asio::error::operation_not_supported) return;
      char bytes[4096];
      const ssize_t size = ::read(stdin_.native_handle(), bytes, sizeof bytes);
      if (size < 0 && (errno == EINTR || errno == EAGAIN)) return ReadStdin();
      if (size <= 0 && dialer_ == nullptr) return RefuseToBegin();
      if (size <= 0) return link_.Leave("its remote shell has ended");  // or the root behind it
      if (dialer_ == nullptr) {
        line_.append(bytes, static_cast<std::size_t>(size));
        if (const auto end = line_.find('\n'); end != std::string::npos) {
          Result<Summons> summons = ParseSummons(line_.substr(0, end));
          line_.clear();
          if (!summons) return link_.Refuse(summons.error().text);
          if (!summons->nodes.empty()) {
            Result<int> number = NumberAmong(summons->nodes, std::getenv("SLURMD_NODENAME"));
            if (!number) return link_.Refuse(number.error().text);
            summons->host = *number;
          }
          Dial(*summons);
        } else if (line_.size() > kLongestLine) {
          return link_.Refuse(ParseSummons(line_).error().text);
        }
      }
      ReadStdin();
    });
  }

  void RefuseToBegin() {
    link_.Refuse(
        "stdin ended before it said which job this host is for; `dtrun agent` is what dtrun starts on other "
        "hosts, start the job with `dtrun run`");
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
                                  link_.Join(std::move(channel));
                                },
                                [this](const Error& error) { link_.Refuse(error.text); }});
  }

  void OnSignal(int signal) {
    if (signal == Lifeline::kGuardGone) return link_.Leave("the first process of its dtrun was killed");
    if (signal == SIGTSTP || signal == SIGCONT || signal == SIGWINCH) return;  // of this terminal only
    if (!link_.joined() && UserSignals::EndsJob(signal)) return link_.End(128 + signal);
    link_.Tell(Asked{signal});
  }

  boost::asio::io_context loop_;
  UserSignals signals_;
  Descriptor stdin_;
  std::string line_;
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
    return AgentLink::kUserError;
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
