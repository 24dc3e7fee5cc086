#include "sdk/helpers/helper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

namespace dtrun::helpers {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

enum class Holds { kFolders, kLibraries, kFile, kNothing };

struct Variable {
  std::string_view name;
  Holds holds;  // kNothing: it is removed
  std::string_view separators = ":";
};

// What shells, the loader, Python and Perl look up or run before their actual work.
constexpr Variable kVariables[] = {
    {"PATH", Holds::kFolders},
    {"LD_LIBRARY_PATH", Holds::kFolders, ":;"},
    {"PYTHONPATH", Holds::kFolders},
    {"PYTHONHOME", Holds::kFolders},
    {"PERL5LIB", Holds::kFolders},
    {"PERLLIB", Holds::kFolders},
    {"GCONV_PATH", Holds::kFolders},
    {"LD_PRELOAD", Holds::kLibraries, ": "},
    {"LD_AUDIT", Holds::kLibraries, ":"},
    {"PYTHONUSERBASE", Holds::kFile},
    {"PYTHONSTARTUP", Holds::kFile},
    {"BASH_ENV", Holds::kFile},
    {"ENV", Holds::kFile},
    {"PYTHONINSPECT", Holds::kNothing},
};

// The loader's token for the program's folder is not a relative path.
bool IsAbsolute(std::string_view path) {
  return path.substr(0, 1) == "/" || path.substr(0, 7) == "$ORIGIN" || path.substr(0, 9) == "${ORIGIN}";
}

template <class Keep>
std::string Filtered(std::string_view list, std::string_view separators, Keep keep) {
  std::string out;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(separators), list.size());
    const std::string_view entry = list.substr(0, end);
    if (!entry.empty() && keep(entry)) out.append(out.empty() ? "" : separators.substr(0, 1)).append(entry);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

// The sanitised value; empty: remove the variable.
std::string SafeValue(const Variable& variable, std::string_view value) {
  switch (variable.holds) {
    case Holds::kFolders: return AbsoluteFolders(value, variable.separators);
    case Holds::kLibraries:  // an entry without '/' is looked up in the loader's folders
      return Filtered(value, variable.separators, [](std::string_view library) {
        return IsAbsolute(library) || library.find('/') == library.npos;
      });
    case Holds::kFile: return std::string(IsAbsolute(value) ? value : "");
    case Holds::kNothing: break;
  }
  return {};
}

// Without PATH bash also searches the current folder.
constexpr char kDefaultPath[] = "PATH=/usr/local/bin:/usr/bin:/bin";

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

void CloseFrom(unsigned first, int kept) {
  const auto close_range = [](unsigned from, unsigned to) {
    return from > to || ::syscall(SYS_close_range, from, to, 0U) == 0;
  };
  const auto middle = static_cast<unsigned>(kept);
  if (close_range(first, middle - 1) && close_range(middle + 1, ~0U)) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = static_cast<int>(first); fd < static_cast<int>(limit.rlim_cur); ++fd) {
    if (fd != kept) ::close(fd);
  }
}

// Runs in the child of a process with other threads: async-signal-safe calls only. Returns on failure.
void Become(char* const* argv, char* const* environment, const Helper& helper, int output, int report) {
  ::setpgid(0, 0);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 ||
      (helper.with_errors && ::dup2(output, STDERR_FILENO) < 0))
    return;
  CloseFrom(3, report);
  if (::chdir(helper.folder.c_str()) == 0) ::execve(argv[0], argv, environment);
}

// Both ends are above the standard descriptors, which may be closed in this process.
int RaisedPipe(int ends[2]) {
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  for (int i = 0; i < 2; ++i) {
    if (ends[i] > STDERR_FILENO) continue;
    const int raised = ::fcntl(ends[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int number = errno;
    ::close(std::exchange(ends[i], raised));
    if (raised >= 0) continue;
    ::close(ends[1 - i]);
    return number;
  }
  return 0;
}

// Polls periodically if there is no pidfd, as when a seccomp profile denies it.
class Ended {
 public:
  explicit Ended(pid_t pid) : pid_(pid), handle_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;
  ~Ended() {
    if (handle_ >= 0) ::close(handle_);
  }
  int handle() const { return handle_; }
  explicit operator bool() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
  }

 private:
  const pid_t pid_;
  const int handle_;
};

// Reads until the program has ended and all its output is read.
End Read(int output, const Ended& ended, const Helper& helper, std::string* text) {
  constexpr std::chrono::milliseconds kLook{20};
  const auto deadline = Clock::now() + helper.patience;
  bool open = true;
  for (;;) {
    const bool gone = static_cast<bool>(ended);  // before the read, so that its output is complete
    std::array<char, 16384> chunk;
    const ssize_t size = open ? ::read(output, chunk.data(), chunk.size()) : 0;
    if (size > 0) {
      const std::size_t room = helper.most - text->size();
      text->append(chunk.data(), std::min(static_cast<std::size_t>(size), room));
      if (static_cast<std::size_t>(size) > room) return End::kTooMuch;
      if (Clock::now() < deadline) continue;
    }
    if (gone) return End::kEnded;
    open = open && (size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR)));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return End::kTooLate;
    pollfd ready[] = {{open ? output : -1, POLLIN, 0}, {ended.handle(), POLLIN, 0}};
    ::poll(ready, 2, static_cast<int>((ended.handle() >= 0 ? left : std::min(left, kLook)).count()));
  }
}

}  // namespace

bool Answer::succeeded() const { return end == End::kEnded && WIFEXITED(status) && WEXITSTATUS(status) == 0; }

std::string AbsoluteFolders(std::string_view list, std::string_view separators) {
  return Filtered(list, separators, IsAbsolute);
}

std::vector<std::string> SafeEnvironment(std::vector<std::string> environment) {
  std::vector<std::string> out;
  for (std::string& entry : environment) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const auto* const found = std::find_if(
        std::begin(kVariables), std::end(kVariables),
        [&](const Variable& variable) { return variable.name == std::string_view(entry).substr(0, equals); });
    if (found != std::end(kVariables) && equals < entry.size()) {
      const std::string value = SafeValue(*found, std::string_view(entry).substr(equals + 1));
      if (value.empty()) continue;
      entry.replace(equals + 1, entry.npos, value);
    }
    out.push_back(std::move(entry));
  }
  const bool has_path = std::any_of(
      out.begin(), out.end(), [](const std::string& entry) { return entry.compare(0, 5, "PATH=") == 0; });
  if (!has_path) out.emplace_back(kDefaultPath);
  return out;
}

std::string Find(const std::string& program, std::string_view path) {
  std::error_code failure;
  if (program.find('/') != program.npos) return fs::absolute(program, failure).string();
  std::string found;
  static_cast<void>(Filtered(path, ":", [&](std::string_view folder) {
    if (!found.empty() || folder.front() != '/') return false;
    const std::string file = (fs::path(folder) / program).string();
    struct stat info {};
    const bool runs = ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 0111) != 0;
    if (runs && ::access(file.c_str(), X_OK) == 0) found = file;
    return false;
  }));
  return found;
}

pid_t Start(const Helper& helper, int output) {
  if (helper.command.empty() || helper.command.front().substr(0, 1) != "/") return -ENOENT;
  const std::vector<std::string> environment =
      SafeEnvironment(helper.environment.empty() ? OwnEnvironment() : helper.environment);
  const std::vector<char*> argv = Pointers(helper.command), variables = Pointers(environment);
  int report[2];
  if (const int number = RaisedPipe(report); number != 0) return -number;
  // Block signals, so that no handler of this process runs in the child.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    errno = ESRCH;
    if (::getppid() == self) Become(argv.data(), variables.data(), helper, output, report[1]);
    const int number = errno;
    static_cast<void>(::write(report[1], &number, sizeof number) == 0);
    ::_exit(127);
  }
  int number = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(report[1]);
  if (child > 0) {
    number = 0;
    while (::read(report[0], &number, sizeof number) < 0 && errno == EINTR) {
    }
    while (number != 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ::close(report[0]);
  return number != 0 ? -number : child;
}

Answer Ask(const Helper& helper) {
  Answer answer;
  int ends[2];
  if (const int number = RaisedPipe(ends); number != 0) {
    answer.status = number;
    return answer;
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const pid_t child = Start(helper, ends[1]);
  ::close(ends[1]);
  if (child < 0) {
    answer.status = -child;
  } else {
    answer.end = Read(ends[0], Ended(child), helper, &answer.text);
    ::kill(-child, SIGKILL);  // and its descendants; it is not reaped yet, so the number is still its own
    ::kill(child, SIGKILL);
    while (::waitpid(child, &answer.status, 0) < 0 && errno == EINTR) {
    }
  }
  ::close(ends[0]);
  return answer;
}

}  // namespace dtrun::helpers
