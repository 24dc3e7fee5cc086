#include "core/node/guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/number.h"
#include "core/base/own_file.h"
#include "core/base/standard_output.h"
#include "core/node/inheritance.h"
#include "core/output/file_write.h"
#include "core/process/cgroup.h"
#include "core/process/process.h"
#include "core/process/runtime_dir.h"
#include "core/process/terminal_pump.h"
#include "core/process/user_signals.h"
#include "core/verdict/cause.h"
#include "core/verdict/verdict.h"

namespace dtrun::node {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kRelayed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH};
// An agent that has not ended this long after the order to kill at once is stuck.
constexpr std::chrono::seconds kStuckAfter{1};
// A signal that stops the whole job also stops the guard within this time.
constexpr std::chrono::seconds kStopsAlone{1};
constexpr std::chrono::minutes kStaleAfter{1};

// Blocks the signals that the guard takes over, while this object lives. The agent inherits the mask, so
// direct signals other than SIGTERM do not affect it.
class SignalBlock {
 public:
  SignalBlock() {
    sigset_t blocked;
    ::sigemptyset(&blocked);
    ::sigemptyset(&relayed_);
    for (int signal : kRelayed) {
      ::sigaddset(&blocked, signal);
      struct sigaction now {};
      ::sigaction(signal, nullptr, &now);
      if (now.sa_handler != SIG_IGN) ::sigaddset(&relayed_, signal);
    }
    for (int signal : {SIGCHLD, SIGPIPE, SIGTTIN, SIGTTOU}) ::sigaddset(&blocked, signal);
    taken_ = UniqueFd(::signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK));
    ::sigprocmask(SIG_BLOCK, &blocked, &before_);
  }
  ~SignalBlock() {
    while (Next() != 0) {
    }
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

  int descriptor() const { return taken_.get(); }
  // 0: no pending signal.
  int Next() {
    signalfd_siginfo info;
    if (::read(taken_.get(), &info, sizeof info) != sizeof info) return 0;
    return static_cast<int>(info.ssi_signo);
  }
  bool IsRelayed(int signal) const { return ::sigismember(&relayed_, signal) == 1; }

 private:
  sigset_t before_, relayed_;
  UniqueFd taken_;
};

void SayOnStderr(const std::string& text) { output::WriteWithin(STDERR_FILENO, text); }

// New descriptors must not get the numbers 0, 1 or 2: a rank would use them as its own.
void OpenStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDWR);
  }
}

// A pipe with the agent as writer, which never writes. When the agent dies, the kernel sends SIGCONT to the
// reader, the guard, because a stopped guard could end nothing.
struct DeathPipe {
  UniqueFd reader, writer;

  static DeathPipe Make() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
      return {};  // the guard also watches the agent in other ways
    DeathPipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
    ::fcntl(ends[0], F_SETOWN, ::getpid());
    ::fcntl(ends[0], F_SETSIG, SIGCONT);
    ::fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK);
    return pipe;
  }
};

void Remove(const fs::path& runtime_dir) {
  for (const Error& error : process::RemoveRuntimeDir(runtime_dir))
    SayOnStderr("dtrun: " + error.text + "\n");
  process::RemoveStale(runtime_dir, kStaleAfter);
}

[[noreturn]] void BeAgent(const std::function<int(process::Lifeline&)>& work, const fs::path& dir,
                          UniqueFd control, std::optional<process::TerminalPump> pump, pid_t guard) {
  ::setsid();
  process::BecomeSubreaper();
  // A stopped agent cannot clean up, so the guard's death must wake it.
  ::prctl(PR_SET_PDEATHSIG, SIGCONT);
  if (::getppid() != guard) ::_exit(128 + SIGKILL);
  if (pump) {
    ::dup2(pump->reader().get(), STDIN_FILENO);
    pump.reset();
  }
  const Result<UniqueFd> lock = process::MakeRuntimeDir(dir);
  if (!lock) {
    SayOnStderr("dtrun: " + lock.error().text + "\n");
    ::_exit(kUserError);
  }
  int code = 0;
  {
    process::Lifeline lifeline(dir, std::move(control));
    try {
      code = process::ReapWhile([&] { return work(lifeline); });
    } catch (const std::exception& error) {  // before the work began
      SayOnStderr(fmt::format("dtrun: the agent cannot start: {}\n", Exhausted(error)));
      code = kUserError;
    }
    code = FinishOutput(code);
    process::KillDescendants(process::kKillPatience);
    process::RemoveRuntimeDir(
        dir);  // in case the guard is dead; otherwise the guard does the same and reports failures
  }
  if (::getppid() == guard) ::kill(guard, SIGCONT);  // a stopped guard would stay
  ::_exit(code);
}

class Guard {
 public:
  Guard(pid_t agent, UniqueFd handle, UniqueFd control, SignalBlock& signals,
        std::optional<process::TerminalPump> pump)
      : agent_(agent),
        handle_(std::move(handle)),
        control_(std::move(control)),
        signals_(signals),
        pump_(std::move(pump)) {}

  // Returns the agent's wait status.
  int Watch() {
    for (;;) {
      std::array<pollfd, 4> polls{{{handle_.get(), POLLIN, 0},
                                   {signals_.descriptor(), POLLIN, 0},
                                   {control_.get(), POLLIN, 0},
                                   pump_ ? pump_->Wanted() : pollfd{-1, 0, 0}}};
      if (::poll(polls.data(), polls.size(), Patience()) < 0) continue;
      if (polls[2].revents != 0) Listen();
      if (polls[0].revents != 0) break;
      if (polls[1].revents != 0) Relay();
      if (!handle_ && AgentEnded()) break;
      if (pump_ && pump_->Advance(polls[3].revents)) Tell(process::Lifeline::kStacksKey);
      WakeAgent();
    }
    int status = 0;
    while (::waitpid(agent_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  const std::string& last_words() const { return last_words_; }

  // Used when the agent cannot do it any more.
  void WriteVerdict(int signal) const {
    const auto space = record_.find(' '), end = record_.find('\n');
    if (end == std::string::npos) return;  // there is no run directory yet
    const mode_t mode = NumberOf<mode_t>(std::string_view(record_).substr(0, space)).value_or(0);
    const fs::path folder = record_.substr(space + 1, end - space - 1);
    const std::string json = verdict::AgentKilledJson(record_.substr(end + 1), signal);
    const Status written = ReplaceOwnFile(run_dir_.get(), folder, "verdict.json", json, FileModeIn(mode));
    if (!written) SayOnStderr("dtrun: " + written.error().text + "\n");
  }

 private:
  int Patience() const {
    const int patience = pump_ ? pump_->Patience() : -1;
    if (stopped_by_ == 0) return patience;
    constexpr int kSoon = static_cast<int>(std::chrono::milliseconds(kStopsAlone).count() / 10);
    return patience < 0 ? kSoon : std::min(patience, kSoon);
  }

  // Check after SIGCHLD.
  bool AgentEnded() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(agent_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
  }

  void LookAtAgent() {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(agent_), &info, WSTOPPED | WNOHANG) != 0 || info.si_pid == 0)
      return;
    stopped_by_ = info.si_status;
    stopped_at_ = Clock::now();
  }

  // A stopped agent watches nothing, and other hosts would consider it dead.
  void WakeAgent() {
    if (stopped_by_ == 0 || Clock::now() - stopped_at_ < kStopsAlone) return;
    ::kill(agent_, SIGCONT);
    SayOnStderr(
        fmt::format("dtrun: the agent (pid {}) was stopped by {}, but not the rest of its job: resumed it\n",
                    agent_, process::SignalName(std::exchange(stopped_by_, 0))));
  }

  void Relay() {
    while (const int signal = signals_.Next()) {
      if (signal == SIGCHLD) {
        LookAtAgent();
        process::ReapOthers({agent_});
      }
      if (!signals_.IsRelayed(signal)) continue;
      if ((signal == SIGINT || signal == SIGQUIT) && ++interrupts_ >= 2) {
        if (interrupts_ == 2) second_interrupt_ = Clock::now();
        if (Clock::now() - second_interrupt_ > kStuckAfter) ::kill(agent_, SIGKILL);
      }
      if (process::UserSignals::EndsJob(signal))
        pump_.reset();  // a debugger at its prompt ends at end of input
      Tell(signal);
    }
  }

  void Tell(int signal) {
    const char message = static_cast<char>(signal);
    // The buffer is full only if the agent has not read for hundreds of signals.
    ::send(control_.get(), &message, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void Listen() {
    std::array<char, process::kMessageBytes> message;
    for (;;) {
      iovec bytes{message.data(), message.size()};
      msghdr header{};
      header.msg_iov = &bytes;
      header.msg_iovlen = 1;
      alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
      header.msg_control = space;
      header.msg_controllen = sizeof space;
      const ssize_t size = ::recvmsg(control_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
      UniqueFd folder;
      const cmsghdr* const rights = size > 0 ? CMSG_FIRSTHDR(&header) : nullptr;
      if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
        folder = UniqueFd(fd);
      }
      if (size < 0) return;
      if (size == 0) return control_.Reset();
      if (message[0] == process::kMessageStopped) ::kill(::getpid(), SIGSTOP);
      if (message[0] == process::kMessageLastWords)
        last_words_.assign(message.data() + 1, static_cast<std::size_t>(size - 1));
      if (message[0] == process::kMessageRecord) {
        record_.assign(message.data() + 1, static_cast<std::size_t>(size - 1));
        run_dir_ = std::move(folder);
      }
    }
  }

  pid_t agent_;
  UniqueFd handle_, control_, run_dir_;
  SignalBlock& signals_;
  std::optional<process::TerminalPump> pump_;
  std::string last_words_, record_;
  int stopped_by_ = 0;  // the signal that has stopped the agent
  Clock::time_point stopped_at_{};
  int interrupts_ = 0;
  Clock::time_point second_interrupt_{};
};

void SayAgentDied(pid_t agent, int signal, const std::vector<process::Process>& left,
                  const std::string& last_words) {
  std::string text = fmt::format("dtrun: the agent (pid {}) was killed by signal {} ({}); ", agent, signal,
                                 process::SignalName(signal));
  text += left.empty() ? "all processes of the job were ended\n" : "these remain:\n";
  for (const process::Process& process : left) text += "  " + process::WhyItStays(process) + "\n";
  text += last_words + fmt::format("  class: {}\n", verdict::ClassName(verdict::ExitClass::kLauncher));
  if (signal == SIGKILL) text += "  next: look in `dmesg` for the out-of-memory killer, or start it again\n";
  SayOnStderr(text);
}

// Children that a shell left before it became dtrun by `exec`; dtrun leaves them alone.
std::vector<pid_t> ChildrenNow() {
  std::vector<pid_t> children;
  for (const process::Process& process : process::Descendants(::getpid())) {
    if (process.parent == ::getpid()) children.push_back(process.pid);
  }
  return children;
}

}  // namespace

int Guarded(const std::function<int(process::Lifeline&)>& work) {
  OpenStandardDescriptors();
  ::signal(SIGCHLD, SIG_DFL);  // if the parent ignores it, this process would miss the ends of its children
  ::signal(SIGXFSZ, SIG_IGN);  // exceeding `ulimit -f` is then an ordinary write error; ranks get the default
  auto refuse = [](const Error& error) {
    SayOnStderr("dtrun: " + error.text + "\n");
    return kUserError;
  };
  if (Status files = AllowsOpenFiles(1); !files) return refuse(files.error());
  const fs::path dir = process::NameRuntimeDir();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return refuse(Error::System("connect guard and agent", errno));
  }
  UniqueFd ours(ends[0]), theirs(ends[1]);
  std::optional<process::TerminalPump> pump;
  if (::isatty(STDIN_FILENO)) {
    Result<process::TerminalPump> opened = process::TerminalPump::Open(STDIN_FILENO);
    if (!opened) return refuse(opened.error());
    pump = *std::move(opened);
  }

  const std::vector<pid_t> spared = ChildrenNow();
  process::BecomeSubreaper();
  SignalBlock signals;
  std::fflush(nullptr);
  const pid_t guard = ::getpid();
  DeathPipe pipe = DeathPipe::Make();
  const pid_t agent = ::fork();
  if (agent == 0) {
    ours.Reset();
    pipe.reader.Reset();
    BeAgent(work, dir, std::move(theirs), std::move(pump), guard);
  }
  if (agent < 0) {
    return refuse(Error::System("start the agent", errno));
  }
  theirs.Reset();
  pipe.writer.Reset();
  if (pump) pump->reader().Reset();
  UniqueFd handle(
      static_cast<int>(::syscall(SYS_pidfd_open, agent, 0)));  // empty: denied by a seccomp profile

  const Result<fs::path> cgroups = process::OwnCgroup();
  Guard watch(agent, std::move(handle), std::move(ours), signals, std::move(pump));
  const int status = watch.Watch();
  if (cgroups)
    process::RemoveCgroup(*cgroups, dir.filename().string());  // the agent was killed, or there is none
  const std::vector<process::Process> left = process::KillDescendants(process::kKillPatience, spared);
  Remove(dir);
  if (cgroups) process::RemoveStaleCgroups(*cgroups);
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  watch.WriteVerdict(WTERMSIG(status));
  SayAgentDied(agent, WTERMSIG(status), left, watch.last_words());
  return 128 + WTERMSIG(status);
}

}  // namespace dtrun::node
