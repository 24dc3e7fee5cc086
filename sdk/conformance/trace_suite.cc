// What a plugin leaves in the process that is not its own, while it works: threads and output.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "process_state.h"
#include "suite.h"
#include "thread_watch.h"

namespace dtrun::conformance {
namespace {

// What a program may handle.
constexpr int kOfTheProgram[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD};
// A thread that was just started has not called on_start.
constexpr std::chrono::seconds kStart{5};

int OwnThread() { return static_cast<int>(syscall(SYS_gettid)); }

std::set<int> Threads() {
  std::set<int> ids;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", gone))
    ids.insert(std::atoi(entry.path().filename().c_str()));
  return ids;
}

// "" for a thread that has ended.
std::string Line(int thread, const std::string& key) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":\t")) return line.substr(key.size() + 2);
  }
  return "";
}

// No value for a thread that has ended.
std::optional<unsigned long long> Blocked(int thread) {
  const std::string mask = Line(thread, "SigBlk");
  if (mask.empty()) return std::nullopt;
  return std::stoull(mask, nullptr, 16);
}

bool Has(unsigned long long mask, int signal) { return (mask >> (signal - 1) & 1) != 0; }

// Of the signals above, those that the thread takes.
std::string OpenSignals(int thread) {
  const auto blocked = Blocked(thread);
  std::string open;
  for (const int signal : kOfTheProgram) {
    if (blocked && !Has(*blocked, signal))
      open += std::string(open.empty() ? "" : ", ") + "SIG" + sigabbrev_np(signal);
  }
  return open;
}

// Until a new thread first runs, glibc blocks all signals in it, its own too, which no program can block
// (pthread_create, nptl/pthread_create.c).
bool IsStarting(int thread) {
  const auto blocked = Blocked(thread);
  return blocked && Has(*blocked, __SIGRTMIN);
}

// Once `holds`, or after a while.
template <class Condition>
void Settle(Condition&& holds) {
  const auto end = std::chrono::steady_clock::now() + kStart;
  while (!holds() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Of a library, too. Instances are made before the case begins, so one more is made here.
void ThreadsTakeNoSignals(const BackendUnderTest& backend) {
  std::set<int> own = Threads();
  std::mutex mutex;
  const Subject subject(backend);
  subject.Play(2, [&](Rank& rank) {
    {
      const std::lock_guard lock(mutex);
      own.insert(OwnThread());
    }
    MakeSomeCalls(subject, rank);
    rank.Meet("called");
    if (rank.rank() == 0) {
      for (const int thread : Threads()) {
        if (own.count(thread) != 0) continue;
        Settle([=] { return !IsStarting(thread) && OpenSignals(thread).empty(); });
        const std::string name = Line(thread, "Name");
        EXPECT_EQ(OpenSignals(thread), "") << "signals of the program that the thread '" << name
                                           << "' takes; block them around what starts it (H10)";
      }
    }
    rank.Meet("looked");
  });
}

// A library that is linked statically starts threads of the plugin's file too, and knows no on_start.
bool OneIsDeclared() {
  const auto all = SeenThreads();
  return all.empty() || std::ranges::any_of(all, &SeenThread::declared);
}

// Of two instances; threads are seen from the second on. False, and skipped, where this program sees none.
bool SeeThreads(const BackendUnderTest& backend) {
  {
    const Subject first(backend);
    WatchThreads(reinterpret_cast<const void*>(first.table().enqueue));
  }
  {
    const Subject subject(backend);
    subject.Play(2, [&](Rank& rank) {
      MakeSomeCalls(subject, rank);
      rank.Meet("called");
      Settle(OneIsDeclared);
      rank.Meet("looked");
    });
  }
  return ThreadsCanBeSeen();
}

// What a library opens once may stay, so from the second instance on.
void InstancesLeaveNothing(const BackendUnderTest& backend) {
  std::optional<ProcessState> before;
  for (int round = 0; round < 4; ++round) {
    {
      const Subject subject(backend);
      subject.Play(2, [&](Rank& rank) { MakeSomeCalls(subject, rank); });
    }
    if (round > 0 && !before) before = ProcessState::Now();
  }
  EXPECT_EQ(Changes(*before, ProcessState::Settled(before->threads), true), "")
      << "by instances that were shut down";
}

constexpr char kUnseen[] = "this program cannot see which threads a plugin starts";

void ThreadsEndWithTheInstance(const BackendUnderTest& backend) {
  if (!SeeThreads(backend)) GTEST_SKIP() << kUnseen;
  const auto all = SeenThreads();
  EXPECT_EQ(std::ranges::count(all, false, &SeenThread::over), 0)
      << "of the plugin's " << all.size() << " threads run after shutdown has returned (T9)";
}

void ThreadsAreDeclared(const BackendUnderTest& backend) {
  if (!SeeThreads(backend)) GTEST_SKIP() << kUnseen;
  const auto all = SeenThreads();
  EXPECT_TRUE(OneIsDeclared()) << "the plugin has started " << all.size()
                               << " threads, and none of them has called on_start of dtrun.threads/1 (H10)";
  const auto left = [](const SeenThread& one) { return one.declared && one.over && !one.ended; };
  EXPECT_EQ(std::ranges::count_if(all, left), 0)
      << "threads that have called on_start and ended without on_stop (H10)";
}

// What is written to a descriptor while it lives.
class Output {
 public:
  explicit Output(int descriptor)
      : descriptor_(descriptor), before_(dup(descriptor)), file_(memfd_create("output", MFD_CLOEXEC)) {
    std::fflush(nullptr);
    dup2(file_, descriptor_);
  }
  ~Output() {
    std::fflush(nullptr);
    dup2(before_, descriptor_);
    close(before_);
    close(file_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  std::string Text() const {
    std::fflush(nullptr);
    std::string text(4096, '\0');
    const ssize_t bytes = pread(file_, text.data(), text.size(), 0);
    return text.substr(0, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  }

 private:
  const int descriptor_, before_, file_;
};

// A library may say something once, on standard error. What the suite's log writes there is the plugin's
// right.
void NothingIsPrinted(const BackendUnderTest& backend) {
  for (const bool first : {true, false}) {
    std::string out, err;
    std::uint64_t logged = LoggedBytes();
    {
      const Output outputs(STDOUT_FILENO), errors(STDERR_FILENO);
      {
        const Subject subject(backend);
        subject.Play(2, [&](Rank& rank) { MakeSomeCalls(subject, rank); });
      }
      out = outputs.Text();
      err = errors.Text();
      logged = LoggedBytes() - logged;
    }
    EXPECT_EQ(out, "") << "on standard output, which is the program's (T15)";
    if (!first && logged == 0) {
      EXPECT_EQ(err, "") << "on standard error, at each communicator; use dtrun.log/1 (T15)";
    }
  }
}

std::function<void()> WithThreads(const BackendUnderTest& backend, void (*body)(const BackendUnderTest&)) {
  return [=] {
    if (backend.process.size > 0) GTEST_SKIP() << "a launched process calls init once";
    if (backend.most_ranks == 1) GTEST_SKIP() << "needs 2 ranks, of which 1 are allowed";
    body(backend);
  };
}

}  // namespace

void AddTraceCases(const BackendUnderTest& backend) {
  AddCase("Plugin", "StartsNoThreadThatTakesSignals", "H10", backend,
          WithThreads(backend, ThreadsTakeNoSignals));
  AddCase("Plugin", "DeclaresItsThreads", "H10", backend, WithThreads(backend, ThreadsAreDeclared));
  AddCase("Plugin", "KeepsNothingOfInstancesThatWent", "T9", backend,
          WithThreads(backend, InstancesLeaveNothing));
  AddCase("Plugin", "EndsItsThreadsInShutdown", "T9", backend,
          WithThreads(backend, ThreadsEndWithTheInstance));
  AddCase("Plugin", "PrintsNothing", "T15", backend, WithThreads(backend, NothingIsPrinted));
}

}  // namespace dtrun::conformance
