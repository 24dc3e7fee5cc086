// Jobs of several processes: the C program in testing/, the relay backend, a real store.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/options/snapshot.h"
#include "core/store/testing/local_store.h"

extern char** environ;

namespace dtrun::comm {
namespace {

using store::testing::LocalStore;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

using Variables = std::map<std::string, std::string>;

// A running rank program. Keeps its stderr.
class Process {
 public:
  Process(const std::string& mode, const Variables& variables) {
    std::vector<std::string> env;
    for (char** entry = environ; *entry != nullptr; ++entry) env.emplace_back(*entry);
    for (const auto& [name, value] : variables) env.push_back(name + "=" + value);
    std::vector<char*> envp;
    for (std::string& entry : env) envp.push_back(entry.data());
    envp.push_back(nullptr);
    std::string program = RANK_PROGRAM, argument = mode;
    char* argv[] = {program.data(), argument.data(), nullptr};

    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd write(ends[1]);
    read_ = UniqueFd(ends[0]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, write.get(), STDERR_FILENO);
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv, envp.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
  }

  // Returns its exit status, or minus the signal that ended it; `errors` is its stderr.
  int Join() {
    char chunk[4096];
    for (;;) {
      const ssize_t got = ::read(read_.get(), chunk, sizeof chunk);
      if (got > 0) errors.append(chunk, static_cast<std::size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR)) break;
    }
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string errors;

 private:
  pid_t pid_ = -1;
  UniqueFd read_;
};

class Runtime : public ::testing::Test {
 protected:
  Variables Of(int rank, int size) const {
    const store::Address address = store_.AddressOf(rank);
    Variables variables = {{"DTRUN_JOB", "test"},
                           {"DTRUN_GENERATION", "0"},
                           {"DTRUN_STORE", address.socket},
                           {"DTRUN_JOB_KEY", address.job_key},
                           {"DTRUN_NODE_RANK", "0"},
                           {"DTRUN_HOST_COUNT", "1"},
                           {"DTRUN_LOCAL", "none"},  // the relay alone
                           {"DTRUN_BACKEND", "relay"},
                           {"DTRUN_BACKEND_PATH", RELAY_BACKEND},
                           {"DTRUN_BACKEND_FILE_ID", "any"},
                           {"DTRUN_BACKEND_OPTIONS", options::ToJson({})},
                           {"DTRUN_BACKEND_TIMEOUT", timeout_}};
    variables["DTRUN_RANK"] = variables["DTRUN_LOCAL_RANK"] = std::to_string(rank);
    variables["DTRUN_WORLD_SIZE"] = variables["DTRUN_LOCAL_WORLD_SIZE"] = std::to_string(size);
    return variables;
  }
  // Returns the exit status of every rank; their output goes into the test's output.
  std::vector<int> Run(const std::string& mode, int size) {
    std::vector<Process> ranks;
    for (int rank = 0; rank < size; ++rank) ranks.emplace_back(mode, Of(rank, size));
    std::vector<int> statuses;
    for (Process& rank : ranks) {
      statuses.push_back(rank.Join());
      if (statuses.back() != 0) ADD_FAILURE() << rank.errors;
    }
    return statuses;
  }
  // Starts one rank that must fail, and returns its stderr.
  std::string RunAndFail(const Variables& variables) {
    Process rank("everything", variables);
    EXPECT_EQ(rank.Join(), 3) << rank.errors;
    return rank.errors;
  }

  LocalStore store_;
  std::string timeout_ = "60s";
};

TEST_F(Runtime, MakesAWorldOfOneForAProgramThatDtrunDidNotStart) {
  for (const char* mode : {"everything", "forked", "abandoned"}) {
    Process alone(mode, {});
    EXPECT_EQ(alone.Join(), 0) << alone.errors;
  }
}

TEST_F(Runtime, RunsEveryOperationInWorldsOfSeveralSizes) {
  for (const int size : {1, 2, 3, 4}) {
    LocalStore fresh;
    std::vector<Process> ranks;
    for (int rank = 0; rank < size; ++rank) {
      Variables variables = Of(rank, size);
      variables["DTRUN_STORE"] = fresh.AddressOf(rank).socket;
      variables["DTRUN_JOB_KEY"] = fresh.AddressOf(rank).job_key;
      ranks.emplace_back("everything", variables);
    }
    for (Process& rank : ranks) EXPECT_EQ(rank.Join(), 0) << rank.errors;
  }
}

TEST_F(Runtime, TellsTheAgentWhoJoinedAndWhoLeft) {
  Run("everything", 2);
  EXPECT_THAT(store_.events().entries(), UnorderedElementsAre("joined 0", "joined 1", "left 0", "left 1"));
}

TEST_F(Runtime, NamesARankThatDoesNotComeAndReportsItToTheAgent) {
  timeout_ = "5s";  // also for joining, on a loaded machine
  Run("missing_rank", 2);
  EXPECT_THAT(store_.events().entries(), Contains("report 0: comm.timeout of 1"));
}

TEST_F(Runtime, NamesARankThatDoesNotComeToASplit) {
  timeout_ = "5s";
  Run("missing_split", 2);
  EXPECT_THAT(store_.events().entries(), Contains("report 0: comm.absent of 1"));
}

TEST_F(Runtime, AbortEndsPendingAndLaterCalls) { Run("aborted", 2); }

TEST_F(Runtime, KeepsAForkedChildFromCommunicating) { Run("forked", 2); }

TEST_F(Runtime, SurvivesHandlesThatOutliveIt) { Run("abandoned", 2); }

TEST_F(Runtime, RefusesRanksOfUnlikeCapabilities) {
  Variables other = Of(1, 2);
  other["RELAY_TYPES"] = "0x1e";
  Process first("everything", Of(0, 2)), second("everything", other);
  EXPECT_EQ(first.Join(), 3);
  EXPECT_EQ(second.Join(), 3);
  EXPECT_THAT(first.errors + second.errors,
              AllOf(HasSubstr("backend 'relay' says on rank"), HasSubstr("dtypes 0x1e")));
}

TEST_F(Runtime, EndsInTimeWhenARankNeverJoins) {
  Variables variables = Of(0, 2);
  variables["DTRUN_BACKEND_TIMEOUT"] = "100ms";
  const std::string errors = RunAndFail(variables);
  EXPECT_THAT(errors, HasSubstr("rank 0 joining the 2 ranks of 'world' over backend 'relay'"));
  EXPECT_THAT(errors, HasSubstr("join/1"));
  EXPECT_THAT(store_.events().entries(), Contains("report 0: comm.timeout of -1"));
}

TEST_F(Runtime, RunsWithoutARecorderThatItCannotReach) {
  Variables variables = Of(0, 1);
  variables["DTRUN_RECORDER"] = "/proc/1/fd/99999";
  Process rank("everything", variables);
  EXPECT_EQ(rank.Join(), 0) << rank.errors;
  EXPECT_THAT(rank.errors,
              HasSubstr("dtrun will not see where rank 0 is when the job hangs, nor calls that differ: "
                        "open the flight recorder '/proc/1/fd/99999': "));
}

TEST_F(Runtime, ExplainsAJobWithoutABackend) {
  Variables variables = Of(0, 1);
  variables["DTRUN_BACKEND"] = "none";
  EXPECT_THAT(RunAndFail(variables),
              AllOf(HasSubstr("backend.name is \"none\""), HasSubstr("DTRUN_CONFIG_BACKEND_NAME=gloo")));
}

TEST_F(Runtime, ExplainsAnIncompleteEnvironment) {
  Variables variables = Of(0, 1);
  variables.erase("DTRUN_WORLD_SIZE");
  EXPECT_THAT(RunAndFail(variables), HasSubstr("DTRUN_WORLD_SIZE is missing"));
}

TEST_F(Runtime, ExplainsAnAgentThatIsGone) {
  const Variables variables = Of(0, 1);
  store_.Stop();
  EXPECT_THAT(RunAndFail(variables), HasSubstr("no agent of dtrun listens on"));
}

TEST_F(Runtime, ExplainsABackendThatIsNotThere) {
  Variables variables = Of(0, 1);
  variables["DTRUN_BACKEND_PATH"] = (store_.folder() / "libdtrun_backend_none.so").native();
  EXPECT_THAT(RunAndFail(variables), HasSubstr("libdtrun_backend_none.so"));
}

TEST_F(Runtime, ExplainsOptionsThatAreNoJson) {
  Variables variables = Of(0, 1);
  variables["DTRUN_BACKEND_OPTIONS"] = "{";
  EXPECT_THAT(RunAndFail(variables), HasSubstr("DTRUN_BACKEND_OPTIONS"));
}

TEST_F(Runtime, TakesTheDefaultForALogLevelThatDoesNotExist) {
  Variables variables = Of(0, 1);
  variables["DTRUN_LOG"] = "loud";
  Process rank("everything", variables);
  EXPECT_EQ(rank.Join(), 0) << rank.errors;
}

TEST_F(Runtime, WarnsOnceOfALauncherWhoseRanksDoNotJoin) {
  for (const Variables& variables : {Variables{{"WORLD_SIZE", "2"}},
                                     {{"OMPI_COMM_WORLD_SIZE", "2"}},
                                     {{"PMI_SIZE", "2"}},
                                     {{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}}}) {
    Process alone("everything", variables);
    EXPECT_EQ(alone.Join(), 0);
    const std::string given = variables.begin()->first + "=2 means that a launcher started 2 ranks";
    const auto at = alone.errors.find(given);
    EXPECT_NE(at, alone.errors.npos) << alone.errors;
    EXPECT_EQ(alone.errors.find(given, at + 1), alone.errors.npos) << alone.errors;
  }
  for (const Variables& variables :
       {Variables{{"WORLD_SIZE", "1"}}, {{"SLURM_NTASKS", "2"}}, {{"WORLD_SIZE", "many"}}}) {
    Process alone("everything", variables);
    EXPECT_EQ(alone.Join(), 0);
    EXPECT_THAT(alone.errors, Not(HasSubstr("is alone")));
  }
}

}  // namespace
}  // namespace dtrun::comm
