#include "core/stacks/unwinder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/base/fd.h"
#include "core/base/read_file.h"
#include "core/base/result.h"
#include "core/base/text.h"
#include "core/stacks/kernel.h"
#include "sdk/helpers/helper.h"

namespace dtrun::stacks {
namespace {

using Clock = Unwinder::Clock;

constexpr std::size_t kMostOutput = std::size_t{256} << 10;
// Time for a killed tool to disappear; after that the wait ends.
constexpr std::chrono::milliseconds kGoneWithin{200};

std::vector<std::string> ArgumentsOf(const std::string& program, pid_t pid) {
  const std::string number = std::to_string(pid);
  if (program.ends_with("eu-stack")) return {program, "-s", "-m", "-i", "-n", "64", "-p", number};
  // Ignores the user's settings and scripts next to the program's files.
  return {program,
          "-batch",
          "-nx",
          "-iex",
          "set auto-load no",
          "-iex",
          "set width 0",
          "-iex",
          "set confirm off",
          "-iex",
          "set print frame-arguments none",
          "-iex",
          "set print frame-info location-and-address",
          "-p",
          number,
          "-ex",
          "thread apply all backtrace 64"};
}

// Without debuginfod servers, which would be queried over the network.
std::vector<std::string> Environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("DEBUGINFOD_") && !text.starts_with("LC_") && !text.starts_with("LANG="))
      out.emplace_back(text);
  }
  out.emplace_back("LC_ALL=C");
  return out;
}

int MillisecondsUntil(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long>(left, 0, 60'000));
}

struct Run {
  std::string output;
  bool in_time = true;
  int status = -1;  // from waitpid; -1: unknown
  bool failed() const { return !in_time || !WIFEXITED(status) || WEXITSTATUS(status) != 0; }
};

// Collects the tool's output until it has ended or the deadline has passed; then kills it.
Run Await(pid_t tool, const UniqueFd& handle, const UniqueFd& output, Clock::time_point deadline,
          Attached::Scope& scope) {
  Run run;
  std::array<char, 16384> bytes{};
  for (;;) {
    pollfd ready{output.get(), POLLIN, 0};
    run.in_time = ::poll(&ready, 1, MillisecondsUntil(deadline)) > 0;
    const ssize_t size = run.in_time ? ::read(output.get(), bytes.data(), bytes.size()) : 0;
    if (size <= 0) break;
    run.output.append(bytes.data(),
                      std::min(static_cast<std::size_t>(size), kMostOutput - run.output.size()));
  }
  pollfd ended{handle.get(), POLLIN, 0};
  if (run.in_time && ::poll(&ended, 1, MillisecondsUntil(deadline)) <= 0) run.in_time = false;
  scope.Kill();  // if in time, the tool has ended, but perhaps not its children
  if (!run.in_time) ::poll(&ended, 1, static_cast<int>(kGoneWithin.count()));
  scope.Gone();
  int status = 0;
  if (::waitpid(tool, &status, WNOHANG) == tool) run.status = status;
  return run;
}

bool AnyIs(pid_t pid, std::string_view states) {
  return std::ranges::any_of(
      TasksOf(pid), [&](const Task& task) { return states.find(task.state) != std::string_view::npos; });
}

// The last line that is not a frame.
std::string Complaint(const std::string& output) {
  std::istringstream lines(output);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != '#' && !line.starts_with("PID ") && !line.starts_with("TID "))
      last = line;
  }
  return last.empty() ? "printed no stack" : Printable(last).substr(0, 200);
}

}  // namespace

Attached::Scope::Scope(Attached& all, pid_t process) : all_(all) {
  const std::lock_guard lock(all_.mutex_);
  entry_ = all_.entries_.insert(all_.entries_.end(), Entry{.process = process});
}

Attached::Scope::~Scope() {
  const std::lock_guard lock(all_.mutex_);
  all_.entries_.erase(entry_);
}

void Attached::Scope::Runs(pid_t tool, int handle) {
  const std::lock_guard lock(all_.mutex_);
  entry_->tool = tool;
  entry_->handle = handle;
}

void Attached::Scope::Gone() { Runs(0, -1); }

void Attached::Scope::Kill() {
  const std::lock_guard lock(all_.mutex_);
  Attached::Kill(*entry_);
}

bool Attached::Has(pid_t process) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(entries_, process, &Entry::process) != entries_.end();
}

std::vector<pid_t> Attached::tools() const {
  const std::lock_guard lock(mutex_);
  std::vector<pid_t> tools;
  for (const Entry& entry : entries_) {
    if (entry.tool != 0) tools.push_back(entry.tool);
  }
  return tools;
}

void Attached::KillTools() {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) Kill(entry);
}

// Kills the group as well: a tool may be a wrapper script. The pid belongs to the tool until it is reaped,
// which the handle shows.
void Attached::Kill(const Entry& entry) {
  if (entry.tool == 0 || ::syscall(SYS_pidfd_send_signal, entry.handle, SIGKILL, nullptr, 0) != 0) return;
  ::kill(-entry.tool, SIGKILL);
}

Unwinder Unwinder::Find(const std::string& path, std::shared_ptr<Attached> attached) {
  Unwinder found;
  found.attached_ = std::move(attached);
  for (const char* name : {"eu-stack", "gdb"}) {
    found.program_ = helpers::Find(name, path);
    if (!found.program_.empty()) break;
  }
  return found;
}

Unwound Unwinder::Unwind(pid_t pid, Clock::time_point deadline) const {
  Unwound unwound;
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const int unseen = process ? 0 : errno;
  int ends[2];
  if (program_.empty() || !process || AnyIs(pid, "t") || ::pipe2(ends, O_CLOEXEC) != 0) {
    unwound.trouble = program_.empty()  ? "neither eu-stack (elfutils) nor gdb is on PATH"
                      : unseen == ESRCH ? "it has ended"
                      : unseen != 0     ? Error::System("watch it", unseen).text
                                        : "a debugger has it";
    return unwound;
  }
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const std::string maps = ReadKernelFile(fmt::format("/proc/{}/maps", pid));
  const bool was_stopped = AnyIs(pid, "T");  // both tools leave it so
  Attached::Scope scope(*attached_, pid);
  const pid_t tool = helpers::Start(
      {.command = ArgumentsOf(program_, pid), .environment = Environment(), .with_errors = true},
      writing.get());
  writing.Reset();
  const UniqueFd handle(tool > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, tool, 0)) : -1);
  if (!handle) {
    const int number = tool < 0 ? -tool : errno;
    if (tool > 0) {
      ::kill(tool, SIGKILL);  // our child, not reaped yet
      ::waitpid(tool, nullptr, 0);
    }
    unwound.trouble = fmt::format("{} cannot be started: {}", name(), std::strerror(number));
    return unwound;
  }
  scope.Runs(tool, handle.get());
  const Run run = Await(tool, handle, reading, deadline, scope);
  // When the tool dies, the traced process continues. But the SIGSTOP of the attach may still be pending or
  // may have stopped the process; SIGCONT ends both.
  if (!was_stopped && (run.failed() || AnyIs(pid, "T")))
    ::syscall(SYS_pidfd_send_signal, process.get(), SIGCONT, nullptr, 0);
  if (!run.in_time) {
    unwound.late = true;
    unwound.trouble =
        fmt::format("{} took too long{}", name(),
                    name() == "gdb" ? "; eu-stack, of the package elfutils, is several times as fast" : "");
    return unwound;
  }
  const auto frames_of = [&](pid_t thread) {
    return name() == "gdb" ? FramesOfGdb(run.output, thread, maps) : FramesOfEuStack(run.output, thread);
  };
  unwound.frames = frames_of(pid);
  unwound.any_waits = AnyWaits(frames_of(kAllThreads));
  if (unwound.frames.empty()) {
    unwound.trouble = WIFSIGNALED(run.status) && run.status != -1
                          ? fmt::format("{} was killed by signal {}", name(), WTERMSIG(run.status))
                          : fmt::format("{}: {}", name(), Complaint(run.output));
    return unwound;
  }
  std::istringstream lines(run.output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) unwound.text += "    " + Printable(line) + "\n";
  }
  return unwound;
}

}  // namespace dtrun::stacks
