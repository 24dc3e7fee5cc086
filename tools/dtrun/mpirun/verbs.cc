// dtrun's hidden verbs for the mpirun launcher's plan.
//
// Between mpirun and a rank stands a process that waits for the rank's exit and reports its status to the
// agent: mpirun does not report which rank failed first, and its exit code alone does not tell how. Hydra
// does not even end a job if a rank exits with an error before MPI_Init.
//
// mpirun's daemons on the other hosts are started without ssh. mpirun on host 0 runs dtrun as its remote
// shell, which leaves the command in the job's store. The planned process on the other host waits for the
// command and becomes the daemon. Daemons and ranks are therefore children of their host's agent and end with
// it, and every rank inherits the plan's environment for its host.
#include "tools/dtrun/verbs.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/contract/environment.h"
#include "core/process/program.h"
#include "core/process/rank_fifo.h"
#include "core/process/runtime_dir.h"
#include "core/store/connection.h"
#include "tools/dtrun/command_line/first_word.h"
#include "tools/dtrun/mpirun/identity.h"

namespace dtrun::mpirun {
namespace {

using Words = std::vector<std::string>;

constexpr int kNotStarted = 127;  // exit code, as in shells
// The names of the job's hosts, in order, comma-separated. Set by the launcher.
constexpr char kHosts[] = "DTRUN_MPI_HOSTS";
// The variable through which Hydra calls that remote shell. Also set by the launcher; not for ranks.
constexpr char kHydraArguments[] = "HYDRA_LAUNCHER_EXTRA_ARGS";

// Called periodically with the rank's process, because programs load libraries over time.
enum class Look {
  kAgain,
  kEnough,
  kEnd,  // terminate the rank, as with exit code 1
};

[[noreturn]] void EndAs(int status) {
  if (WIFSIGNALED(status)) {
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);  // the rank has already written one, if enabled
    ::signal(WTERMSIG(status), SIG_DFL);
    sigset_t own;
    ::sigemptyset(&own);
    ::sigaddset(&own, WTERMSIG(status));
    ::sigprocmask(SIG_UNBLOCK, &own, nullptr);
    ::raise(WTERMSIG(status));
  }
  ::_exit(WEXITSTATUS(status));
}

// False: terminate the rank.
bool WatchUntilEnough(pid_t child, const std::function<Look(pid_t)>& look) {
  constexpr std::chrono::milliseconds kFirst{50}, kLongest{32'000};
  const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  const auto ended = [child] {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
  };
  for (std::chrono::milliseconds pause = kFirst;; pause = std::min(2 * pause, kLongest)) {
    pollfd end{handle.get(), POLLIN, 0};
    const int ready = ::poll(&end, 1, static_cast<int>(pause.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready != 0 || (!handle && ended())) return true;
    const Look seen = look(child);
    if (seen != Look::kAgain) return seen == Look::kEnough;
  }
}

// Whether the parent, an mpirun or its daemon, has sent SIGTERM to the process group of this process, which
// blocks it. An mpirun does so if it ends the job.
bool ParentSentTerm() {
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  siginfo_t info{};
  const timespec now{};
  return ::sigtimedwait(&term, &info, &now) == SIGTERM && info.si_code == SI_USER &&
         info.si_pid == ::getppid();
}

// A Hydra forwards the end of its own stdin to the proxy of rank 0. If that proxy has already ended with its
// ranks, the write kills mpiexec with SIGPIPE (MPICH 4.0.2, control_cb in pmiserv_cb.c; seen on a busy host).
// Therefore rank 0 of a Hydra ends only after its stdin has, or after 2 s.
void AwaitEndOfInput() {
  constexpr int kLongestMs = 2000;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (::poll(&input, 1, kLongestMs) < 0 && errno == EINTR) {
  }
}

// Runs `become` in a child of the same process group, so that mpirun's signals reach it. Does not return:
// reports the child's ending to `agent` (core/process/rank_fifo.h) and ends the same way. The child does not
// outlive this process, which keeps mpirun's pipes open: if they are closed early, Hydra's proxy only waits
// for ranks and ignores signals. Returns an exit code, after an error message, only if no child can be
// created.
int Attend(const Identity& identity, const UniqueFd& agent, const std::function<int()>& become,
           const std::function<Look(pid_t rank)>& look) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    PrintMessage("dtrun: cannot start a process for the rank: {}; raise `ulimit -u`\n", std::strerror(errno));
    return kNotStarted;
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::_exit(::getppid() == self ? become() : kNotStarted);
  }
  const bool fits = WatchUntilEnough(child, look);
  if (!fits) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!fits) status = W_EXITCODE(1, 0);
  // If the agent is gone, this process is ended anyway.
  const bool asked = WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM && ParentSentTerm();
  static_cast<void>(process::TellEnd(agent, {child, status, asked ? 1 : 0}));
  if (identity.served == pmi::Kind::kPmi1 && identity.rank == 0) AwaitEndOfInput();
  EndAs(status);
}

// Of the command for host `index`.
std::string Key(int index) { return fmt::format("mpi/daemon/{}", index); }

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A call on the store of this process's job that does not count as a rank's call.
Result<store::Reply> Call(store::Body body) {
  Result<store::Connection> connection = store::Connection::Open(Variable(contract::kStore));
  if (!connection) return connection.error();
  store::Hello hello;
  hello.job_key = Variable(contract::kJobKey);
  hello.generation = std::strtoull(Variable(contract::kGeneration).c_str(), nullptr, 10);
  hello.rank = 0;
  Result<store::Reply> reply = connection->Call(hello, std::nullopt);
  if (reply && reply->status == DTRUN_OK) reply = connection->Call(std::move(body), std::nullopt);
  if (reply && reply->status != DTRUN_OK) return Error{reply->status, reply->value};
  return reply;
}

// The index in `hosts` of `name` as spelled by mpirun, which may omit the domain.
Result<int> IndexOf(const std::string& name, const std::string& hosts) {
  const auto host = [](std::string_view text) { return text.substr(0, text.find('.')); };
  int found = -1, index = 0;
  for (const std::string_view one : Split(hosts, ',')) {
    if (one == name) return index;
    if (found < 0 && host(one) == host(name)) found = index;
    ++index;
  }
  if (found >= 0) return found;
  return Error{DTRUN_NOT_FOUND,
               fmt::format("mpirun wants to start a daemon on '{}', which is not one of the job's hosts ({})",
                           name, hosts)};
}

int Complain(const std::string& text) {
  PrintMessage("dtrun: {}\n", text);
  return kNotStarted;
}

// Returns only on failure.
int Become(const Words& command) {
  const Result<std::string> file = FindHere(command.empty() ? "" : command[0]);
  if (!file) return Complain(file.error().text);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(file->c_str(), argv.data());
  const int number = errno;
  std::error_code failure;
  return Complain(process::ExplainExec(command[0], *file, std::filesystem::current_path(failure), number));
}

// Puts Open MPI's segments where they are removed with the job's own folder after any kill. In /dev/shm
// itself they would remain if mpirun is killed.
Status KeepSegmentsWithTheJob(const std::filesystem::path& store) {
  const Result<std::filesystem::path> job = process::MakeMemoryDir(store.parent_path());
  if (!job) return job.error();
  ::setenv("OMPI_MCA_btl_vader_backing_directory", job->c_str(), 0);
  return {};
}

int Rank(Words words) {
  const Lookup lookup = [](const char* name) { return std::getenv(name); };
  const bool host = !words.empty() && words[0] == "--host";
  if (host) words.erase(words.begin());
  const Result<Identity> identity = ReadIdentity(lookup);
  if (!identity) return Complain(identity.error().text);
  const std::string isolated_ranks = Variable(contract::kIsolatedRanks);
  ::unsetenv(contract::kIsolatedRanks);
  if (isolated_ranks != "allow") {
    if (const Status fits = CheckMpi(words, identity->served); !fits) return Complain(fits.error().text);
  }
  if (host) {
    if (const Status here = CheckHostProcess(*identity, lookup); !here) return Complain(here.error().text);
    return Become(words);
  }
  const auto variables = RankVariables(*identity, lookup);
  if (!variables) return Complain(variables.error().text);
  const bool has_store = lookup(contract::kStore) != nullptr;
  const std::string socket = Variable(contract::kStore);
  if (has_store) {
    if (const Status kept = KeepSegmentsWithTheJob(socket); !kept) return Complain(kept.error().text);
  }
  const bool own_outputs = lookup(contract::kRankOutputs) != nullptr && has_store;
  for (const char* name : {contract::kFirstRank, contract::kRankOutputs, kHosts, kHydraArguments})
    ::unsetenv(name);
  for (const auto& [name, value] : *variables) {
    ::setenv(name.c_str(), value.c_str(), 1);
    for (std::string& word : words) cli::ReplaceAll(&word, "${" + name + "}", value);
  }
  if (!own_outputs) return Become(words);
  const Result<UniqueFd> agent = process::OpenEndFifo(socket, identity->local_rank);
  if (!agent) return Complain(agent.error().text);
  const auto become = [&] {
    const Status printed = process::PrintToRankFifos(socket, identity->local_rank);
    return printed ? Become(words) : Complain(printed.error().text);
  };
  const bool looks = isolated_ranks != "allow" && identity->local_rank == 0;  // one per host is enough
  return Attend(*identity, *agent, become, [&](pid_t rank) {
    if (!looks) return Look::kEnough;
    const Loaded loaded = LoadedBy(rank, identity->served);
    if (loaded != Loaded::kForeign) return loaded == Loaded::kOwn ? Look::kEnough : Look::kAgain;
    const bool fails = isolated_ranks == "fail";
    Complain(fmt::format("{}rank {}: {}", fails ? "" : "warning: ", identity->rank,
                         ForeignText(identity->served)));
    return fails ? Look::kEnd : Look::kEnough;
  });
}

int Shell(const Words& words) {
  if (words.size() < 2) return Complain("mpi-shell needs a host and a command; mpirun starts it");
  std::string command;
  for (std::size_t i = 1; i < words.size(); ++i) command += (i == 1 ? "" : " ") + words[i];
  const Result<int> index = IndexOf(words[0], Variable(kHosts));
  if (!index) return Complain(index.error().text);
  if (std::to_string(*index) == Variable(contract::kNodeRank)) return Become({"/bin/sh", "-c", command});
  const Result<store::Reply> left = Call(store::Set{Key(*index), command});
  return left ? 0 : Complain(left.error().text);
}

int Daemon() {
  // Without a timeout: the agent ends the job if mpirun fails.
  const Result<store::Reply> command =
      Call(store::Get{Key(std::atoi(Variable(contract::kNodeRank).c_str())), -1});
  if (!command) return Complain(command.error().text);
  return Become({"/bin/sh", "-c", command->value});
}

}  // namespace

std::optional<int> Main(const Words& words) {
  if (words.empty()) return std::nullopt;
  const Words rest(words.begin() + 1, words.end());
  if (words[0] == "mpi-rank") return Rank(rest);
  if (words[0] == "mpi-shell") return Shell(rest);
  if (words[0] == "mpi-daemon") return Daemon();
  return std::nullopt;
}

}  // namespace dtrun::mpirun
