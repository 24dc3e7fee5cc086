#include "core/process/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>

#include "core/base/number.h"
#include "core/process/program.h"
#include "sdk/helpers/helper.h"

namespace dtrun::process {
namespace {

// Sanitizers do not support two processes in one address space.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kShareMemory = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kShareMemory = false;
#else
constexpr bool kShareMemory = true;
#endif
#else
constexpr bool kShareMemory = true;
#endif

enum class SpawnStep : std::int32_t { kParentGone, kCgroup, kDescriptors, kLimit, kBinding, kFolder, kExec };

struct Failure {
  SpawnStep step;
  int number;
};

// All data that the child needs, prepared beforehand: the child must not allocate.
struct CloneStart {
  const SpawnRequest& request;
  const char* file;
  char* const* argv;
  char* const* env;
  int in, out, err;
  int report;  // close-on-exec: end of file means that exec succeeded
  pid_t parent;
  const cpu_set_t* cpus;
  int members = -1;  // cgroup.procs of the request's cgroup, to join it after the start; -1: none
};

// The argument of clone3(2), for headers that lack it.
struct CloneArguments {
  std::uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
      set_tid_size, cgroup;
};
constexpr std::uint64_t kIntoCgroup = 0x200000000;

[[noreturn]] void Fail(const CloneStart& start, SpawnStep step) {
  const Failure failure{step, errno};
  // A failed write cannot be handled: the parent then sees a child that exited with 127.
  [[maybe_unused]] const ssize_t size = ::write(start.report, &failure, sizeof failure);
  ::_exit(127);
}

void CloseOthersOnExec() {
  if (::syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) == 0) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = 3; fd < static_cast<int>(limit.rlim_cur); ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// Runs in the child, possibly in the parent's memory: async-signal-safe calls only.
int RunChild(void* argument) {
  CloneStart& start = *static_cast<CloneStart*>(argument);
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (start.request.adopts) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  errno = ESRCH;
  if (::getppid() != start.parent) Fail(start, SpawnStep::kParentGone);
  if (start.members >= 0 && ::write(start.members, "0", 1) < 0 && start.request.cgroup_required)
    Fail(start, SpawnStep::kCgroup);

  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  if ((start.in != 0 && ::dup2(start.in, 0) < 0) || ::dup2(start.out, 1) < 0 || ::dup2(start.err, 2) < 0) {
    Fail(start, SpawnStep::kDescriptors);
  }
  if (start.request.extra_fd >= 0) {
    // Move descriptors that occupy this number, if they are still needed.
    if (start.report == kExtraDescriptor) {
      start.report = ::fcntl(start.report, F_DUPFD_CLOEXEC, kExtraDescriptor + 1);
    }
    if (::dup2(start.request.extra_fd, kExtraDescriptor) < 0) Fail(start, SpawnStep::kDescriptors);
  }
  CloseOthersOnExec();
  if (start.request.extra_fd >= 0) ::fcntl(kExtraDescriptor, F_SETFD, 0);
  if (start.request.open_files) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = *start.request.open_files;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) Fail(start, SpawnStep::kLimit);
  }
  if (start.cpus != nullptr && ::sched_setaffinity(0, sizeof *start.cpus, start.cpus) != 0) {
    Fail(start, SpawnStep::kBinding);
  }
  if (::chdir(start.request.cwd.c_str()) != 0) Fail(start, SpawnStep::kFolder);
  ::execve(start.file, start.argv, start.env);
  Fail(start, SpawnStep::kExec);
}

UniqueFd OpenMembers(int cgroup) {
  return UniqueFd(cgroup < 0 ? -1 : ::openat(cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC));
}

struct CloneResult {
  pid_t pid = -1;
  int handle = -1;
};

// Starts a child on its own stack, in the cgroup from its first instruction: moving it there later takes
// milliseconds on a machine with many processors. No C library wraps this call. Returns a negative errno if
// the kernel refuses. Unused if memory is not shared.
[[maybe_unused]] long CloneIntoCgroup(CloneStart& start, std::byte* stack, std::size_t size, int* handle) {
#if defined(__x86_64__)
  CloneArguments arguments{};
  arguments.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | kIntoCgroup;
  arguments.pidfd = reinterpret_cast<std::uint64_t>(handle);
  arguments.exit_signal = SIGCHLD;
  arguments.stack = reinterpret_cast<std::uint64_t>(stack);
  arguments.stack_size = size & ~std::size_t{15};
  arguments.cgroup = static_cast<std::uint64_t>(start.request.cgroup);
  long result = SYS_clone3;
  register int (*run)(void*) asm("r12") = RunChild;
  register void* argument asm("r13") = &start;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%r13, %%rdi\n\t"
      "call *%%r12\n\t"
      "ud2\n"
      "1:"
      : "+a"(result)
      : "D"(&arguments), "S"(sizeof arguments), "r"(run), "r"(argument)
      : "rcx", "r11", "memory");
  return result;
#else
  static_cast<void>(start), static_cast<void>(stack), static_cast<void>(size), static_cast<void>(handle);
  return -ENOSYS;
#endif
}

// Clones with all signals blocked, so that no handler of this process runs in the child.
CloneResult Clone(CloneStart& start) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  CloneResult started;
  if constexpr (kShareMemory) {
    constexpr std::size_t kStackBytes = 64 << 10;
    const auto stack = std::make_unique<std::byte[]>(kStackBytes);
    if (start.request.cgroup >= 0) {
      const long pid = CloneIntoCgroup(start, stack.get(), kStackBytes, &started.handle);
      if (pid > 0) started.pid = static_cast<pid_t>(pid);
    }
    UniqueFd members = started.pid < 0 ? OpenMembers(start.request.cgroup) : UniqueFd();
    start.members = members.get();
    if (started.pid < 0)
      started.pid = ::clone(RunChild, stack.get() + kStackBytes,
                            CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &start, &started.handle);
  } else {
    const UniqueFd members = OpenMembers(start.request.cgroup);
    start.members = members.get();
    started.pid = ::fork();
    if (started.pid == 0) RunChild(&start);
    if (started.pid > 0) started.handle = static_cast<int>(::syscall(SYS_pidfd_open, started.pid, 0));
  }
  const int number = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = number;
  return started;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<cpu_set_t> ParseCpus(const std::string& text) {
  const std::optional<std::vector<int>> list = ReadNumberList(text);
  if (!list || list->back() >= CPU_SETSIZE) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "CPU list '{}' is not of the form '0-3,8' with CPUs below {}",
                     text, CPU_SETSIZE);
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : *list) CPU_SET(static_cast<unsigned>(cpu), &cpus);
  return cpus;
}

struct Pipe {
  UniqueFd read, write;
};

Result<Pipe> OpenPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::System("create a pipe", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string Explain(const SpawnRequest& request, const std::string& file, const Failure& failure) {
  const auto failed = [&failure](std::string_view action) {
    return Error::System(action, failure.number).text;
  };
  switch (failure.step) {
    case SpawnStep::kParentGone: return "the agent ended while the process was being started";
    case SpawnStep::kCgroup: return failed("cannot enter the cgroup of its limits");
    case SpawnStep::kDescriptors: return failed("cannot set up its stdin, stdout and stderr");
    case SpawnStep::kLimit: return failed("cannot restore its limit of open files");
    case SpawnStep::kBinding:
      return failed(fmt::format("cannot bind to CPUs '{}'", request.binding)) +
             "; are they online and allowed here?";
    case SpawnStep::kFolder:
      return failed(fmt::format("cannot enter the working directory '{}'", request.cwd)) +
             "; create it or change job.cwd";
    case SpawnStep::kExec: break;
  }
  return ExplainExec(request.argv[0], file, request.cwd, failure.number, request.option);
}

}  // namespace

Result<Child> Spawn(const SpawnRequest& request) {
  auto refuse = [&](Error error) {
    if (request.rank) error.text = fmt::format("rank {}: {}", *request.rank, error.text);
    return error;
  };
  const bool helper = !request.rank;
  Result<std::string> file =
      FindProgram(request.argv.empty() ? "" : request.argv[0], request.cwd,
                  helper ? helpers::SafeEnvironment(request.env) : request.env, request.option);
  if (!file) return refuse(file.error());
  cpu_set_t cpus;
  if (!request.binding.empty()) {
    Result<cpu_set_t> parsed = ParseCpus(request.binding);
    if (!parsed) return refuse(parsed.error());
    cpus = *parsed;
  }
  Result<Pipe> out = OpenPipe(), err = OpenPipe(), report = OpenPipe();
  for (Result<Pipe>* pipe : {&out, &err, &report}) {
    if (!*pipe) return refuse(pipe->error());
  }
  UniqueFd null;
  if (request.stdin_fd < 0) {
    null = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null) return refuse(Error::System("open '/dev/null'", errno));
  }

  const std::vector<char*> argv = Pointers(request.argv), env = Pointers(request.env);
  CloneStart start{request,
                   file->c_str(),
                   argv.data(),
                   env.data(),
                   null ? null.get() : request.stdin_fd,
                   out->write.get(),
                   err->write.get(),
                   report->write.get(),
                   ::getpid(),
                   request.binding.empty() ? nullptr : &cpus};
  const CloneResult started = Clone(start);
  if (started.pid < 0) {
    const int number = errno;
    Error error = Error::System("cannot start a process", number);
    if (number == EAGAIN) error.text += "; raise `ulimit -u`, or pids.max of the control group";
    return refuse(std::move(error));
  }
  Child child{started.pid, UniqueFd(started.handle), std::move(out->read), std::move(err->read)};

  report->write.Reset();
  Failure failure{};
  ssize_t size = 0;
  do {
    size = ::read(report->read.get(), &failure, sizeof failure);
  } while (size < 0 && errno == EINTR);
  if (size != 0 || !child.handle) {
    const int number = errno;
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, 0);
    if (size == 0) return refuse(Error::System("cannot watch the process", number));
    return refuse(
        Error{failure.number == ENOENT ? DTRUN_NOT_FOUND : DTRUN_SYSTEM, Explain(request, *file, failure)});
  }
  ::fcntl(child.out.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(child.err.get(), F_SETFL, O_NONBLOCK);
  return child;
}

}  // namespace dtrun::process
