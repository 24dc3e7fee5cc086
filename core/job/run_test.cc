#include "core/job/run.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <vector>

#include "core/base/json.h"
#include "core/job/testing_run.h"
#include "core/process/port.h"
#include "core/process/testing.h"

namespace dtrun::job {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct HeaderOnly final : Presenter {
  std::string Header(const plan::Plan&, const std::string& dir) override { return "header " + dir + "\n"; }
};

// Runs as `dtrun --config` does, with stdout and stderr in files.
class RunTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(process::testing::Marked(mark_).empty());
    process::KillDescendants(std::chrono::seconds(30));
  }

  void Plan(const std::vector<std::string>& scripts) {
    plan_ = testing::ShellPlan(scripts, mark_, scratch_.path());
    for (plan::Process& process : plan_.processes) {
      process.env["MASTER_PORT"] = plan::kTokenPort;
      process.env["DTRUN_JOB_KEY"] = plan::kTokenJobKey;
      process.env["DTRUN_STORE"] = plan::kTokenStore;
      process.env["DTRUN_RUN_DIR"] = plan::kTokenRunDir;
      process.env["DTRUN_GENERATION"] = plan::kTokenGeneration;
    }
    plan_.record = {{"config.json", "{}"}};
  }

  void Begin() {
    std::fflush(nullptr);  // otherwise dtrun would write it to its own stdout
    dtrun_ = ::fork();
    ASSERT_GE(dtrun_, 0);
    if (dtrun_ != 0) return;
    for (const auto& [fd, name] : {std::pair{1, "stdout"}, std::pair{2, "stderr"}}) {
      ::dup2(::open((scratch_ / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), fd);
    }
    HeaderOnly presenter;
    RunRequest request{plan_, restart_, presenter};
    request.dir_file = dir_file_;
    request.dir_file_place = "logs.dir_file: ";
    ::_exit(
        node::Guarded([&](process::Lifeline& lifeline) { return job::Run(request, lifeline).exit_code(); }));
  }

  int Await() {
    int status = 0;
    ::waitpid(dtrun_, &status, 0);
    out_ = process::testing::ReadFile(scratch_ / "stdout");
    err_ = process::testing::ReadFile(scratch_ / "stderr");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int RunToEnd() {
    Begin();
    return Await();
  }

  Json Recorded(const std::string& name) {
    return ParseJson(process::testing::ReadFile(scratch_ / ("runs/test/latest/" + name)));
  }

  process::testing::ScratchDir scratch_;
  const std::string mark_ = process::testing::NewMark();
  plan::Plan plan_;
  RestartPolicy restart_;
  std::string dir_file_;
  pid_t dtrun_ = -1;
  std::string out_, err_;
};

TEST_F(RunTest, PrintsHeaderOutputAndVerdictAndRecordsTheRun) {
  Plan({"echo from zero", "echo from one >&2"});
  EXPECT_EQ(RunToEnd(), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("from zero\n"));
  EXPECT_THAT(err_, AllOf(StartsWith("header " + (scratch_ / "runs/test/")), HasSubstr("from one\n")));
  EXPECT_THAT(err_.substr(err_.rfind("dtrun: ")), StartsWith("dtrun: job 'test' succeeded: 2 ranks, "));
  EXPECT_EQ(process::testing::ReadFile(scratch_ / "runs/test/latest/rank-0.out"), "from zero\n");
  EXPECT_EQ(process::testing::ReadFile(scratch_ / "runs/test/latest/config.json"), "{}");
  EXPECT_EQ(Recorded("verdict.json")["result"], "succeeded");
  EXPECT_EQ(Recorded("plan.json")["job"], "test");
}

TEST_F(RunTest, ResolvesTokensAndKeepsTheKeyToTheRanks) {
  Plan({"[ -S $DTRUN_STORE ] && echo $MASTER_PORT $DTRUN_JOB_KEY $DTRUN_RUN_DIR"});
  EXPECT_EQ(RunToEnd(), 0) << err_;
  std::istringstream words(process::testing::ReadFile(scratch_ / "runs/test/latest/rank-0.out"));
  std::string port, key, dir;
  words >> port >> key >> dir;
  EXPECT_EQ(Recorded("runtime.json")["master_port"], port);
  EXPECT_EQ(Recorded("runtime.json")["run_dir"], dir);
  EXPECT_EQ(key.size(), 64u);
  for (const char* name : {"plan.json", "runtime.json"}) {
    EXPECT_THAT(process::testing::ReadFile(scratch_ / ("runs/test/latest/" + std::string(name))),
                Not(HasSubstr(key)));
  }
}

TEST_F(RunTest, ReturnsTheCodeOfTheFirstFailureAndEndsWithTheVerdict) {
  Plan({"exec sleep 1000", "echo last words; kill -9 $$"});
  EXPECT_EQ(RunToEnd(), 137);
  const std::string verdict = err_.substr(err_.find("dtrun: job 'test' failed"));
  EXPECT_THAT(verdict,
              AllOf(HasSubstr("rank 1 was killed by signal 9 (SIGKILL)"), HasSubstr("    | last words\n"),
                    HasSubstr("because of it: rank 0 was stopped by dtrun\n")));
  EXPECT_EQ(Recorded("verdict.json")["exit_code"], 137);
}

TEST_F(RunTest, TellsWhereTheRunIsBeforeRanksStart) {
  Plan({"cat $DIR/told; exec false"});
  dir_file_ = scratch_ / "told";
  EXPECT_EQ(RunToEnd(), 1);
  EXPECT_EQ(out_, fs::canonical(scratch_ / "runs/test/latest").string() + "\n");
}

TEST_F(RunTest, StartsNothingWhereItCannotTellWhereTheRunIs) {
  Plan({": > $DIR/up"});
  dir_file_ = scratch_ / "missing/told";
  EXPECT_EQ(RunToEnd(), 2);
  EXPECT_THAT(err_, HasSubstr("dtrun: logs.dir_file: "));
  EXPECT_THAT(err_, HasSubstr("/missing'"));
  EXPECT_FALSE(fs::exists(scratch_ / "up"));
}

TEST_F(RunTest, ReplacesNoSpecialFileByThePathOfTheRun) {
  Plan({": > $DIR/up"});
  const std::string place = scratch_ / "told";
  const std::vector<std::function<void()>> makes = {
      [&] { ASSERT_EQ(mkfifo(place.c_str(), 0600), 0); },
      [&] { fs::create_symlink("elsewhere", place); },
  };
  for (const auto& make : makes) {
    fs::remove(place);
    make();
    const fs::file_type type = fs::symlink_status(place).type();
    dir_file_ = place;
    EXPECT_EQ(RunToEnd(), 2);
    EXPECT_THAT(err_, HasSubstr("dtrun: logs.dir_file: '" + place + "' is not a regular file"));
    EXPECT_EQ(fs::symlink_status(place).type(), type);
  }
  EXPECT_FALSE(fs::exists(scratch_ / "up"));
}

TEST_F(RunTest, AnswersAnInterruptWithItsCode) {
  Plan({": > $DIR/up; exec sleep 1000"});
  Begin();
  ASSERT_TRUE(process::testing::Eventually([this] { return fs::exists(scratch_ / "up"); }));
  ::kill(dtrun_, SIGINT);
  EXPECT_EQ(Await(), 130);
  EXPECT_THAT(err_, HasSubstr("was interrupted by SIGINT"));
}

TEST_F(RunTest, RefusesACommandThatDoesNotExist) {
  Plan({"exit 0", "exit 0"});
  plan_.processes[1].argv = {"/nowhere/train"};
  EXPECT_EQ(RunToEnd(), 2);
  EXPECT_THAT(err_, HasSubstr("dtrun: rank 1: cannot run '/nowhere/train': no such file or directory"));
  EXPECT_EQ(Recorded("verdict.json")["result"], "not started");
}

TEST_F(RunTest, RefusesAFolderThatCannotBeMade) {
  Plan({"exit 0"});
  std::ofstream(scratch_ / "runs") << "in the way";
  EXPECT_EQ(RunToEnd(), 2);
  EXPECT_THAT(err_, StartsWith("dtrun: cannot create the run directory '"));
}

TEST_F(RunTest, RefusesAPortInUse) {
  Result<process::HeldPort> held = process::HeldPort::Hold(0);
  ASSERT_TRUE(held);
  Plan({"exit 0"});
  plan_.master_port = held->number();
  EXPECT_EQ(RunToEnd(), 2);
  EXPECT_THAT(err_, StartsWith("dtrun: port " + std::to_string(held->number()) + " is in use"));
}

TEST_F(RunTest, RestartsTheWholeWorldWithFreshThingsAndKeepsTheLogsApart) {
  restart_ = {2, {}, {verdict::ExitClass::kSignal}};
  Plan(
      {"echo $DTRUN_GENERATION $DTRUN_JOB_KEY; : > $DIR/up.$DTRUN_GENERATION; "
       "[ $DTRUN_GENERATION = 2 ] || exec sleep 1000",
       "while [ ! -e $DIR/up.$DTRUN_GENERATION ]; do sleep 0.01; done; "
       "[ $DTRUN_GENERATION = 2 ] || kill -9 $$"});
  EXPECT_EQ(RunToEnd(), 0) << err_;
  EXPECT_THAT(err_, AllOf(HasSubstr("dtrun: restart 1 of 2\n"), HasSubstr("dtrun: restart 2 of 2\n"),
                          HasSubstr("succeeded: 2 ranks, "), HasSubstr(", after 2 restarts, logs in ")));
  const std::string run = scratch_ / "runs/test/latest";
  const std::string first = process::testing::ReadFile(run + "/rank-0.out");
  const std::string second = process::testing::ReadFile(run + "/generation-1/rank-0.out");
  EXPECT_THAT(first, StartsWith("0 "));
  EXPECT_THAT(second, StartsWith("1 "));
  EXPECT_NE(first.substr(2), second.substr(2));
  EXPECT_EQ(Recorded("generation-2/runtime.json")["generation"], "2");
  const auto verdict = Recorded("verdict.json");
  ASSERT_EQ(verdict["generations"].size(), 3u);
  EXPECT_EQ(verdict["generations"][1]["exit_class"], "signal");
  EXPECT_EQ(verdict["generations"][1]["first_failed_rank"], 1);
}

TEST_F(RunTest, SaysWhyItDoesNotRestart) {
  restart_ = {2, {}, {verdict::ExitClass::kSignal}};
  Plan({"exit 3"});
  EXPECT_EQ(RunToEnd(), 3);
  EXPECT_THAT(err_, HasSubstr("dtrun: not restarted: restart.on does not list 'user-error'"));
}

TEST_F(RunTest, EndsWithTheCauseWhenTheProgramIsGoneAtARestart) {
  restart_ = {2, {}, {verdict::ExitClass::kUserError}};
  const std::string program = scratch_ / "vanishes";
  std::ofstream(program) << "#!/bin/sh\nrm \"$0\"\nexit 3\n";
  fs::permissions(program, fs::perms::owner_all);
  Plan({"exit 0"});
  plan_.processes[0].argv = {program};
  EXPECT_EQ(RunToEnd(), 3);
  const std::string why = "  not restarted: rank 0: cannot run '" + program + "': no such file";
  EXPECT_THAT(err_.substr(err_.rfind("dtrun: job 'test'")),
              AllOf(StartsWith("dtrun: job 'test' failed after"), HasSubstr("rank 0 exited with code 3"),
                    HasSubstr(why)));
  EXPECT_THAT(Recorded("verdict.json")["text"].get<std::string>(), HasSubstr(why));
  EXPECT_EQ(Recorded("verdict.json")["generations"].size(), 1u);
}

TEST_F(RunTest, CanBeInterruptedBetweenTwoGenerations) {
  restart_ = {9, std::chrono::hours(1), {verdict::ExitClass::kSignal}};
  Plan({"kill -9 $$"});
  Begin();
  ASSERT_TRUE(process::testing::Eventually([this] {
    return process::testing::ReadFile(scratch_ / "stderr").find("restart 2 of 9 in 1h") != std::string::npos;
  }));
  ::kill(dtrun_, SIGTERM);
  EXPECT_EQ(Await(), 143);
}

TEST_F(RunTest, RecordsTheEnvironmentWithoutSecrets) {
  Plan({"exit 0"});
  ::setenv("MY_API_TOKEN", "hush", 1);
  ::setenv("MY_COLOUR", "red", 1);
  EXPECT_EQ(RunToEnd(), 0) << err_;
  ::unsetenv("MY_API_TOKEN");
  EXPECT_EQ(Recorded("environment.json")["MY_API_TOKEN"], "(secret)");
  EXPECT_EQ(Recorded("environment.json")["MY_COLOUR"], "red");
}

TEST_F(RunTest, RestoresTheLimitOfOpenFilesForTheRanks) {
  Plan({"ulimit -n"});
  rlimit before{}, small{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  small = before;
  small.rlim_cur = 123;
  ::setrlimit(RLIMIT_NOFILE, &small);
  EXPECT_EQ(RunToEnd(), 0) << err_;
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(out_, "123\n");
}

}  // namespace
}  // namespace dtrun::job
