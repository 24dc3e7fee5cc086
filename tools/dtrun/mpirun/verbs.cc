#include "tools/dtrun/mpirun/verbs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "core/base/standard_output.h"
#include "core/contract/environment.h"
#include "core/process/memory_dir.h"
#include "core/process/program.h"
#include "core/process/rank_fifo.h"
#include "tools/dtrun/mpirun/attend.h"
#include "tools/dtrun/mpirun/fit.h"
#include "tools/dtrun/mpirun/identity.h"
#include "tools/dtrun/mpirun/remote.h"

namespace dtrun::mpirun {
namespace {

using Words = std::vector<std::string>;

int Complain(const std::string& text) {
  PrintMessage("dtrun: {}\n", text);
  return kNotStarted;
}

// Returns only on failure.
int Become(const Words& command) {
  std::error_code failure;
  const std::string cwd = std::filesystem::current_path(failure).string();
  Words environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  const Result<std::string> file = process::FindProgram(command.empty() ? "" : command[0], cwd, environment);
  if (!file) return Complain(file.error().text);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(file->c_str(), argv.data());
  return Complain(process::ExplainExec(command[0], *file, cwd, errno));
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
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
  const char* policy = lookup(contract::kIsolatedRanks);
  const std::string isolated_ranks = policy == nullptr ? "" : policy;
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
  const char* store = lookup(contract::kStore);
  if (store != nullptr) {
    if (const Status kept = KeepSegmentsWithTheJob(store); !kept) return Complain(kept.error().text);
  }
  const bool own_outputs = lookup(contract::kRankOutputs) != nullptr && store != nullptr;
  const std::string socket = own_outputs ? store : "";
  for (const char* name : {contract::kFirstRank, contract::kRankOutputs, kHosts, kHydraArguments})
    ::unsetenv(name);
  for (const auto& [name, value] : *variables) {
    ::setenv(name.c_str(), value.c_str(), 1);
    for (std::string& word : words) word = Replaced(std::move(word), "${" + name + "}", value);
  }
  if (!own_outputs) return Become(words);
  const Result<UniqueFd> agent = process::OpenEndFifo(socket, identity->local_rank);
  if (!agent) return Complain(agent.error().text);
  const auto become = [&] {
    const Status printed = process::PrintToRankFifos(socket, identity->local_rank);
    return printed ? Become(words) : Complain(printed.error().text);
  };
  const bool looks = isolated_ranks != "allow" && identity->local_rank == 0;  // one per host is enough
  return Attend(*agent, become, [&](pid_t rank) {
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
  const char* hosts = std::getenv(kHosts);
  const char* here = std::getenv(contract::kNodeRank);
  const Result<int> index = IndexOf(words[0], hosts == nullptr ? "" : hosts);
  if (!index) return Complain(index.error().text);
  if (here != nullptr && std::to_string(*index) == here) return Become({"/bin/sh", "-c", command});
  const Status left = LeaveCommand(*index, command);
  return left ? 0 : Complain(left.error().text);
}

int Daemon() {
  const char* here = std::getenv(contract::kNodeRank);
  const Result<std::string> command = AwaitCommand(here == nullptr ? 0 : std::atoi(here));
  if (!command) return Complain(command.error().text);
  return Become({"/bin/sh", "-c", *command});
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
