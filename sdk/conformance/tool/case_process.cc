#include "case_process.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "record.h"

namespace dtrun::conformance::tool {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{2};  // from SIGTERM to SIGKILL
constexpr std::size_t kLines = 20;         // of its output

// More processes of one case than any plugin needs: a plugin that forks doubles them at each call.
constexpr std::size_t kMostProcesses = 256;
constexpr std::array kPrints{"/output", "/printed"};  // standard error and output, in the folder of the case
constexpr std::uintmax_t kMostPrinted = 64 << 20;     // bytes on standard output or error
constexpr std::chrono::milliseconds kCount{200};      // between two looks at how many there are
constexpr int kShare = 20;                            // a look takes at most one part of these of the time

void Redirect(int to, const char* file, int flags) {
  const int opened = open(file, flags, 0600);
  if (opened < 0 || dup2(opened, to) < 0) _exit(126);
  if (opened != to) close(opened);
}

pid_t Start(const std::vector<std::string>& command, const std::string& printed, const std::string& output) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(std::string("fork: ") + strerror(errno));
  if (child > 0) {
    setpgid(child, child);
    return child;
  }
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  Redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
  Redirect(STDOUT_FILENO, printed.c_str(), O_WRONLY | O_CREAT | O_APPEND);
  Redirect(STDERR_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_APPEND);
  sigset_t empty;
  sigemptyset(&empty);
  sigprocmask(SIG_SETMASK, &empty, nullptr);
  execvp(argv[0], argv.data());
  const std::string text = "cannot start '" + command[0] + "': " + strerror(errno) + "\n";
  _exit(write(STDERR_FILENO, text.data(), text.size()) < 0 ? 126 : 127);
}

std::string LastLines(const std::string& file) {
  std::ifstream in(file);
  constexpr std::streamoff kMost = 64 << 10;
  std::error_code none;
  if (fs::file_size(file, none) > kMost && !none) in.seekg(-kMost, std::ios::end);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::string text;
  for (std::size_t i = lines.size() > kLines ? lines.size() - kLines : 0; i < lines.size(); ++i)
    text += lines[i] + "\n";
  return text;
}

// "ended with exit code 1"
std::string EndText(int status) {
  return WIFSIGNALED(status) ? std::string("died of ") + strsignal(WTERMSIG(status))
                             : "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

// What a case has left behind; "" when that is nothing.
std::string LeftBehind(const std::map<pid_t, std::string>& left, bool launched) {
  const std::string own = OwnName();
  const auto count = std::count_if(left.begin(), left.end(),
                                   [&](const auto& entry) { return !launched || entry.second == own; });
  if (count == 0) return {};
  return "it left " + std::to_string(count) + (count == 1 ? " process" : " processes") +
         " behind, which a plugin that forks without exec does (T8)";
}

// What is on standard output, where this program prints nothing in a case.
std::string Printed(const std::string& file) {
  std::string text = LastLines(file);
  if (!text.empty()) text = "on standard output, which is the program's (T15):\n" + text;
  return text;
}

bool PrintsTooMuch(const std::string& folder) {
  std::error_code none;
  return std::ranges::any_of(kPrints, [&](const char* file) {
    const std::uintmax_t bytes = fs::file_size(folder + file, none);
    return !none && bytes > kMostPrinted;
  });
}

// Of a command of --launch, which may end otherwise than its ranks.
std::string BadLaunch(int status, const Record& record) {
  if (record.over && (WIFSIGNALED(status) || WEXITSTATUS(status) != 0) && record.failures.empty())
    return "all ranks had ended the case, and the command of --launch " + EndText(status) +
           ", as when a rank dies afterwards";
  if (record.over || !record.failures.empty()) return "";
  return "the command of --launch " + EndText(status) + " before its ranks had ended the case";
}

// "" when the process ended as one that has said all.
std::string BadEnd(int status, CaseRunner::Ending ending, std::chrono::seconds limit, const Record& record,
                   bool launched) {
  using Ending = CaseRunner::Ending;
  if (ending == Ending::kTooMany) {
    return "it had more than " + std::to_string(kMostProcesses) +
           " processes and was killed; the plugin or its library forks without exec (T8)";
  }
  if (ending == Ending::kTooLoud)
    return "it printed more than " + std::to_string(kMostPrinted >> 20) + " MiB and was killed";
  if (ending == Ending::kTooLate) {
    return (launched && record.over ? "its ranks had ended the case, and the command of --launch"
                                    : std::string("it")) +
           " did not end within " + std::to_string(limit.count()) + " s and was killed";
  }
  if (launched) return BadLaunch(status, record);
  const char* const when = record.over ? " after the case was over" : " in the middle of the case";
  if (WIFSIGNALED(status)) return "the process " + EndText(status) + when;
  if (record.over || !record.failures.empty()) return "";
  return "the process " + EndText(status) + when +
         "; the plugin or its library called exit (T8), became another program by exec, or closed "
         "descriptors that are not its own (T7)";
}

Record Merged(const std::string& folder) {
  Record all;
  std::size_t files = 0, over = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().rfind(kRecord, 0) != 0) continue;
    ++files;
    const Record one = ReadRecord(entry.path());
    all.begun = all.begun || one.begun;
    all.failures.insert(all.failures.end(), one.failures.begin(), one.failures.end());
    over += one.over ? 1 : 0;
    if (one.skipped) all.skip = one.skip;
    all.skipped = all.skipped || one.skipped;
  }
  all.over = files > 0 && over == files;
  return all;
}

}  // namespace

CaseResult RunRepeatedly(int times, const std::function<CaseResult()>& run) {
  CaseResult all = run();
  const auto has_failed = [](const CaseResult& one) { return one.kind == CaseResult::Kind::kFailed; };
  int failed = has_failed(all) ? 1 : 0;
  double seconds = all.seconds;
  for (int i = 1; i < times && all.kind != CaseResult::Kind::kSkipped; ++i) {
    CaseResult one = run();
    seconds += one.seconds;
    if (has_failed(one) && ++failed == 1) all = std::move(one);
  }
  all.seconds = seconds;
  if (times > 1 && failed > 0)
    all.reason = "in " + std::to_string(failed) + " of " + std::to_string(times) + " runs: " + all.reason;
  return all;
}

CaseRunner::CaseRunner() {
  sigemptyset(&awaited_);
  sigaddset(&awaited_, SIGCHLD);
  for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) {
    struct sigaction action {};
    // Under nohup, or in the background of a script, some are ignored, which stays so.
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      sigaddset(&awaited_, number);
  }
  sigprocmask(SIG_BLOCK, &awaited_, nullptr);
}

CaseRunner::Ending CaseRunner::Await(pid_t child, const std::string& folder, Clock::time_point deadline,
                                     int* status) const {
  Clock::time_point look = Clock::now() + kCount;
  for (;;) {
    if (waitpid(child, status, WNOHANG) == child) return Ending::kByItself;
    const Clock::time_point now = Clock::now();
    if (now >= deadline) return Ending::kTooLate;
    if (now >= look) {
      if (family_.Descendants().size() > kMostProcesses) return Ending::kTooMany;
      if (PrintsTooMuch(folder)) return Ending::kTooLoud;
      look = Clock::now() + std::max<Clock::duration>(kCount, kShare * (Clock::now() - now));
    }
    const auto left = std::min(deadline, look) - Clock::now();
    const auto ns =
        std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(left).count(), 0);
    const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
    const int number = sigtimedwait(&awaited_, nullptr, &time);
    if (number <= 0 || number == SIGCHLD) continue;
    kill(-child, SIGKILL);
    family_.EndAll();
    throw Interrupted{number};
  }
}

CaseResult CaseRunner::Run(const std::vector<std::string>& command, const std::string& folder,
                           std::chrono::seconds limit, bool launched) {
  const std::string output = folder + kPrints[0], printed = folder + kPrints[1];
  const auto start = Clock::now();
  const pid_t child = Start(command, printed, output);
  int status = 0;
  const Ending ending = Await(child, folder, start + limit, &status);
  const bool in_time = ending == Ending::kByItself;
  if (ending == Ending::kTooLate) kill(-child, SIGTERM);
  if (ending == Ending::kTooMany || ending == Ending::kTooLoud ||
      (ending == Ending::kTooLate &&
       Await(child, folder, Clock::now() + kGrace, &status) != Ending::kByItself)) {
    kill(-child, SIGKILL);
    waitpid(child, &status, 0);
  }
  const std::string left = LeftBehind(family_.EndAll(), launched);

  CaseResult result;
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const Record record = Merged(folder);
  result.failures = record.failures;
  if (!record.begun) {
    const std::string said = LastLines(output) + LastLines(printed);
    throw NotStarted(
        std::string("no case can be started: ") + (launched ? "the command of --launch " : "its process ") +
        (in_time                      ? EndText(status)
         : ending == Ending::kTooLoud ? "printed too much"
                                      : "did not end within " + std::to_string(limit.count()) + " s") +
        (said.empty() ? " and printed nothing" : "; its output:\n" + said));
  }
  result.over = record.over;
  result.complained = !record.failures.empty();
  if (const std::string text = Printed(printed); !text.empty() && !launched) result.failures.push_back(text);
  std::string end = BadEnd(status, ending, limit, record, launched);
  // Of a case that was killed, what is left may be the suite's own.
  if (end.empty()) end = in_time ? left : "";
  if (!end.empty()) {
    result.failures.push_back(end);
    result.output = LastLines(output);
  }
  if (!result.failures.empty()) {
    result.kind = CaseResult::Kind::kFailed;
    const std::size_t count = result.failures.size();
    result.reason = !end.empty() ? end
                    : count == 1 ? "a check failed"
                                 : std::to_string(count) + " checks failed";
  } else if (record.skipped) {
    result.kind = CaseResult::Kind::kSkipped;
    result.reason = record.skip;
  }
  return result;
}

}  // namespace dtrun::conformance::tool
