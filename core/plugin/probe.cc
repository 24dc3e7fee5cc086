#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/plugin/frame_socket.h"
#include "core/plugin/plugin.h"
#include "core/plugin/probe_keeper.h"
#include "core/plugin/probe_messages.h"

namespace dtrun::plugin {
namespace {

struct Settings {
  std::mutex mutex;
  std::string program = "/proc/self/exe";
  Nanoseconds deadline = std::chrono::seconds(10);
} settings;

Nanoseconds Deadline() {
  const std::lock_guard lock(settings.mutex);
  return settings.deadline;
}

// The answer in a frame: a T, or the child's error.
template <class T>
Result<T> As(const Result<std::string>& frame) {
  Result<FromProbe> answer = frame ? DecodeAnswer(*frame) : frame.error();
  if (!answer) return std::move(answer).error();
  if (Error* const error = std::get_if<Error>(&*answer)) return std::move(*error);
  if (T* const right = std::get_if<T>(&*answer)) return std::move(*right);
  return Error{DTRUN_INTERNAL, "a plugin probe sent an answer to another question"};
}

// The arguments of posix_spawn; the C objects are destroyed with it.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }

  // The child has its own process group, so that the plugin's helpers end with it, and default
  // signals. Returns an errno value.
  int Spawn(const std::string& program, char* const* argv, char* const* environment, int socket, int output,
            pid_t* pid) {
    // Both descriptors are above 3, so no dup2 below overwrites a source.
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, socket, 3);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    return ::posix_spawn(pid, program.c_str(), &actions_, &attributes_, argv, environment);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Duplicates `fd` above the numbers that the child uses.
UniqueFd Raise(UniqueFd fd) { return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 10)); }

std::string SignalText(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("signal {} (SIG{})", number, name);
}

// Whether the signal is raised by the process's own fault; others, such as SIGKILL and SIGTERM, are sent to
// it.
bool IsFault(int signal) {
  constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,  SIGTRAP,
                             SIGABRT, SIGSYS, SIGPIPE, SIGXFSZ, SIGXCPU};
  return std::ranges::find(kFaults, signal) != std::end(kFaults);
}

// "first | second": joins lines for a one-line message.
std::string InOneLine(std::string_view text) {
  std::string out;
  for (const std::string_view line : LinesOf(text)) {
    if (!line.empty()) out.append(out.empty() ? "" : " | ").append(line);
  }
  return out;
}

}  // namespace

void SetProbeProgram(const std::filesystem::path& program) {
  const std::lock_guard lock(settings.mutex);
  settings.program = program.string();
}

void SetProbeDeadline(Nanoseconds deadline) {
  const std::lock_guard lock(settings.mutex);
  settings.deadline = deadline;
}

// A started child, its socket and its output on stdout and stderr.
struct Probe::Child {
  Child(const File& f, pid_t p, UniqueFd s, UniqueFd o)
      : file(f), pid(p), socket(std::move(s)), output(std::move(o)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { End(); }

  static Result<std::unique_ptr<Child>> Start(const File& file, const std::vector<std::string>& environment);

  // The next answer, due at the deadline. `doing` is for messages: "loading".
  Result<std::string> Answer(std::string_view doing);

  // Sends SIGTERM to the keeper (probe_keeper.h).
  void BeginEnd() {
    if (pid <= 0 || std::exchange(ending, true)) return;
    ::kill(pid, SIGTERM);
    ::kill(pid, SIGCONT);
  }

  // Kills and reaps the child and everything that the plugin started. Returns the wait status, or 0 if there
  // is none. A child that is already dying keeps its own status.
  int End() {
    if (pid <= 0) return 0;
    BeginEnd();
    AwaitEnd();
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);  // its group may not exist yet
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
      if (errno == EINTR) continue;
      status = 0;  // already reaped elsewhere
      break;
    }
    pid = -1;
    DrainTail(output.get(), &tail);
    return status;
  }

  // Waits until the child has ended, or for so long that its keeper must be gone.
  void AwaitEnd() const {
    constexpr std::chrono::seconds kMoment{3};
    const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    pollfd ended{handle.get(), POLLIN, 0};
    if (!handle) return static_cast<void>(EndsWithin(kMoment));
    ::poll(&ended, 1, static_cast<int>(std::chrono::milliseconds(kMoment).count()));
  }

  // Whether it ends by itself soon, as expected after it has closed its connections.
  bool HasEnded() const { return EndsWithin(std::chrono::seconds(5)); }

  bool EndsWithin(std::chrono::seconds moment) const {
    const auto deadline = std::chrono::steady_clock::now() + moment;
    for (;;) {
      siginfo_t info{};
      const int none = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
      if (none != 0 || info.si_pid != 0) return true;
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  // The signal that stopped it; 0: none.
  int StoppedBy() const {
    siginfo_t info{};
    const int none = ::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOHANG | WNOWAIT);
    return none != 0 || info.si_pid == 0 ? 0 : info.si_status;
  }

  Error Failed(dtrun_status code, std::string_view how) const {
    std::string text = fmt::format("{} plugin '{}': {}", KindText(file.kind), file.path.string(), how);
    if (!tail.empty()) text += fmt::format("; the last it wrote: '{}'", InOneLine(tail));
    return Error{code, text + "; report it to the plugin's author or choose another plugin"};
  }

  File file;
  pid_t pid;
  FrameSocket socket;
  UniqueFd output;
  std::string tail;
  bool ending = false;
};

Result<std::unique_ptr<Probe::Child>> Probe::Child::Start(const File& file,
                                                          const std::vector<std::string>& environment) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return Error::System("make a socketpair for a plugin probe", errno);
  }
  UniqueFd ours(sockets[0]);
  const UniqueFd theirs = Raise(UniqueFd(sockets[1]));
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) return Error::System("make a pipe for a plugin probe", errno);
  UniqueFd output(pipe_ends[0]);
  const UniqueFd output_end = Raise(UniqueFd(pipe_ends[1]));
  // EINVAL: the descriptor limit is below the numbers for the copies.
  if (!theirs || !output_end) {
    return Error::System("copy a descriptor for a plugin probe", errno == EINVAL ? EMFILE : errno);
  }
  ::fcntl(output.get(), F_SETFL, O_NONBLOCK);

  std::string program;
  {
    const std::lock_guard lock(settings.mutex);
    program = settings.program;
  }
  std::string arguments[] = {program,   "--probe-plugin", KindText(file.kind), file.path.string(),
                             file.name, file.id};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<char*> variables;
  for (const std::string& entry : environment) variables.push_back(const_cast<char*>(entry.c_str()));
  variables.push_back(nullptr);
  pid_t pid = -1;
  const int problem =
      SpawnPlan().Spawn(program, argv.data(), environment.empty() ? environ : variables.data(), theirs.get(),
                        output_end.get(), &pid);
  if (problem != 0) {
    Error error = Error::System(fmt::format("start the plugin probe '{}'", program), problem);
    if (problem == EAGAIN) error.text += "; raise `ulimit -u`";
    return error;
  }
  return std::make_unique<Child>(file, pid, std::move(ours), std::move(output));
}

Result<std::string> Probe::Child::Answer(std::string_view doing) {
  const Nanoseconds limit = Deadline();
  const pid_t number = pid;
  auto line = socket.Receive(std::chrono::steady_clock::now() + limit, output.get(), &tail);
  if (line && *line) return std::move(**line);
  const int stopped_by = StoppedBy();
  const bool lives = line && !HasEnded();
  const int status = End();
  if (!line) {
    if (stopped_by != 0) {
      return Error::Of(DTRUN_TIMEOUT,
                       "{} plugin '{}': its probe (pid {}) was stopped by {} while {}, and was not "
                       "resumed within {}; find out what stopped it, and start again",
                       KindText(file.kind), file.path.string(), number, SignalText(stopped_by), doing,
                       FormatDuration(limit));
    }
    if (line.error().code != DTRUN_TIMEOUT) return Failed(line.error().code, line.error().text);
    return Failed(DTRUN_TIMEOUT, fmt::format("gave no answer in {} while {}", FormatDuration(limit), doing));
  }
  if (lives) {
    return Failed(DTRUN_INTERNAL,
                  fmt::format("closed a descriptor that is not its own (dtrun awaited the answer on it), "
                              "while {}",
                              doing));
  }
  if (WIFSIGNALED(status) && !IsFault(WTERMSIG(status))) {
    return Error::Of(DTRUN_ABORTED,
                     "{} plugin '{}': its probe (pid {}) was killed by {} while {}, "
                     "by a user or because memory ran out; look in `dmesg` for the "
                     "out-of-memory killer, and start again",
                     KindText(file.kind), file.path.string(), number, SignalText(WTERMSIG(status)), doing);
  }
  if (WIFSIGNALED(status)) {
    return Failed(DTRUN_INTERNAL,
                  fmt::format("crashed with {} while {}", SignalText(WTERMSIG(status)), doing));
  }
  if (WEXITSTATUS(status) == kExitOutOfMemory) return Error{DTRUN_OUT_OF_MEMORY, Exhausted(std::bad_alloc())};
  return Failed(DTRUN_INTERNAL,
                fmt::format("ended the process with exit code {} while {}", WEXITSTATUS(status), doing));
}

Result<std::unique_ptr<Probe>> Probe::Begin(const File& file, const std::vector<std::string>& environment) {
  auto child = Child::Start(file, environment);
  if (!child) return std::move(child).error();
  std::unique_ptr<Probe> probe(new Probe);
  probe->child_ = *std::move(child);
  probe->description_.file = file;
  return probe;
}

Status Probe::Describe() {
  auto description = As<Description>(child_->Answer("loading"));
  if (!description) return std::move(description).error();
  File file = std::move(description_.file);
  file.name = description->file.name;
  description_ = *std::move(description);
  description_.file = std::move(file);
  return {};
}

Result<std::unique_ptr<Probe>> Probe::Start(const File& file, const std::vector<std::string>& environment) {
  auto probe = Begin(file, environment);
  if (!probe) return probe;
  if (Status described = (*probe)->Describe(); !described) return std::move(described).error();
  return probe;
}

std::string Probe::Written() {
  DrainTail(child_->output.get(), &child_->tail);
  return InOneLine(child_->tail);
}

void Probe::BeginEnd() { child_->BeginEnd(); }

Probe::~Probe() = default;

std::string Unusable(const LaunchInfo& info) {
  for (const auto& [key, value] : info.facts) {
    if (key == "unusable") return value;
  }
  return {};
}

Result<std::string> Probe::Ask(const std::string& request, std::string_view doing) {
  // If the child is already gone, the missing answer explains how it ended.
  const Status sent = child_->socket.Send(request);
  if (!sent && sent.error().code != DTRUN_REMOTE_FAILURE) return sent.error();
  return child_->Answer(doing);
}

Result<LaunchInfo> Probe::Launch(const dtrun_options& options, int host_count, int local_ranks) {
  return As<LaunchInfo>(Ask(Encode(LaunchRequest{options::ToJson(options), host_count, local_ranks}),
                            "asked for its launch information"));
}

Result<LaunchInfo> Probe::Devices() {
  return As<LaunchInfo>(Ask(Encode(LaunchRequest{}), "asked for its devices"));
}

Result<LaunchPlan> Probe::Plan(const dtrun_options& options, const LaunchJob& job) {
  constexpr std::string_view kDoing = "planning the job";
  LaunchPlan plan;
  auto part = As<PlanPart>(Ask(Encode(PlanRequest{options::ToJson(options), job}), kDoing));
  for (;;) {
    if (!part) return std::move(part).error();
    const bool more = part->more;
    AddTo(&plan, *std::move(part));
    if (!more) return plan;
    part = As<PlanPart>(child_->Answer(kDoing));
  }
}

Result<hosts::Allocation> Probe::FindHosts(const dtrun_options& options,
                                           const hosts::Environment& environment) {
  return As<hosts::Allocation>(
      Ask(Encode(HostsRequest{options::ToJson(options), environment}), "finding hosts"));
}

Result<std::vector<hosts::StartCommand>> Probe::Connect(const dtrun_options& options,
                                                        const ConnectRequest& request) {
  auto answer = As<StartCommands>(
      Ask(Encode(ConnectCall{options::ToJson(options), request}), "asked how to reach the hosts"));
  if (!answer) return std::move(answer).error();
  return std::move(answer->commands);
}

}  // namespace dtrun::plugin
