#include "core/agent/conductor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

#include "core/agent/local_host.h"
#include "core/agent/testing.h"
#include "core/agent/verdict.h"

namespace dtrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr char kSleep[] = "exec sleep 1000";

// An output that outlives the run.
class Keeper : public output::RankOutput {
 public:
  explicit Keeper(output::RankOutput& to) : to_(to) {}
  void Feed(output::Stream stream, std::string_view bytes) override { to_.Feed(stream, bytes); }
  void Close(output::Stream stream) override { to_.Close(stream); }
  void Idle() override { to_.Idle(); }
  std::vector<std::string> Tail(std::size_t count) const override { return to_.Tail(count); }

 private:
  output::RankOutput& to_;
};

class ConductorTest : public ::testing::Test {
 protected:
  void SetUp() override { BecomeSubreaper(); }
  void TearDown() override { EXPECT_THAT(testing::Marked(mark_), IsEmpty()); }

  void Plan(const std::vector<std::string>& scripts) {
    plan_ = testing::ShellPlan(scripts, mark_, scratch_.path());
    for (std::size_t i = 0; i < scripts.size(); ++i) {
      owned_.push_back(std::make_unique<testing::MemoryOutput>());
    }
  }

  Result<Facts> Run(int stdin_fd = -1) {
    LocalOptions options;
    options.socket_dir = scratch_.path();
    options.serve = [](store::Socket) {};
    options.environment = OwnEnvironment();
    options.stdin_fd = stdin_fd;
    conductor_.reset();  // it refers to the host
    host_ = MakeLocalHost(loop_, std::move(options));
    conductor_.emplace(loop_, signals_, plan_, std::vector{host_.get()}, [this](const std::string& line) {
      said_.push_back(line);
      if (on_say_) on_say_();
    });
    Result<std::vector<Prepared>> prepared = conductor_->Prepare(0, std::string(64, '0'));
    if (!prepared) return prepared.error();
    World world;
    world.tokens.resize(1);
    // Outputs end with the run; what a test looks at is kept.
    for (auto& output : owned_) world.outputs.push_back(std::make_unique<Keeper>(*output));
    Result<Facts> facts = conductor_->Run(std::move(world));
    for (auto& output : owned_) {
      printed_.push_back(output->out);
      complained_.push_back(output->err);
      closed_.push_back(output->closed);
    }
    return facts;
  }

  Facts MustRun(int stdin_fd = -1) {
    Result<Facts> facts = Run(stdin_fd);
    if (facts) return *facts;
    ADD_FAILURE() << facts.error().text;
    std::abort();
  }

  void Send(int signal) {
    const char message = static_cast<char>(signal);
    ASSERT_EQ(::send(control_.ours.get(), &message, 1, 0), 1);
  }

  // Once, when rank 0 has printed "ready".
  void WhenReady(std::function<void()> act) {
    owned_[0]->on_feed = [this, act = std::move(act), done = false]() mutable {
      if (done || owned_[0]->out.find("ready\n") == std::string::npos) return;
      done = true;
      act();
    };
  }

  testing::ScratchDir scratch_;
  const std::string mark_ = testing::NewMark();
  plan::Plan plan_;
  testing::SocketPair control_;
  Lifeline lifeline_{scratch_.path(), std::move(control_.theirs)};
  boost::asio::io_context loop_;
  UserSignals signals_{loop_, lifeline_};
  std::vector<std::unique_ptr<testing::MemoryOutput>> owned_;
  std::unique_ptr<Host> host_;
  std::optional<Conductor> conductor_;
  std::vector<std::string> printed_, complained_;
  std::vector<int> closed_;
  std::vector<std::string> said_;
  std::function<void()> on_say_;
};

TEST_F(ConductorTest, RunsAllRanksToTheirEndAndKeepsTheirStreamsApart) {
  Plan({"echo out; echo err >&2", "printf unfinished"});
  const Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, -1);
  ASSERT_EQ(facts.ranks.size(), 2u);
  EXPECT_FALSE(facts.ranks[0].ending->failed());
  EXPECT_EQ(facts.ranks[1].host, "localhost");
  EXPECT_THAT(printed_, ElementsAre("out\n", "unfinished"));
  EXPECT_THAT(complained_, ElementsAre("err\n", ""));
  EXPECT_THAT(closed_, ElementsAre(2, 2));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(ConductorTest, StopsTheOthersWhenARankFails) {
  Plan({kSleep, "exit 3", kSleep});
  const Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 1);
  EXPECT_EQ(facts.ranks[1].ending->code, 3);
  EXPECT_EQ(facts.ranks[1].signal_sent, 0);
  for (int i : {0, 2}) {
    EXPECT_EQ(facts.ranks[i].ending->signal, SIGTERM);
    EXPECT_EQ(facts.ranks[i].signal_sent, SIGTERM);
    EXPECT_GE(facts.ranks[i].ended_at, facts.ranks[1].ended_at);
  }
}

TEST_F(ConductorTest, KeepsTheFirstFailureWhenOthersFollow) {
  Plan({"trap 'exit 9' TERM; : > $DIR/armed; while :; do sleep 0.01; done",
        "while [ ! -e $DIR/armed ]; do sleep 0.01; done; kill -9 $$"});
  const Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 1);
  EXPECT_EQ(facts.ranks[1].ending->signal, SIGKILL);
  EXPECT_EQ(facts.ranks[0].ending->code, 9);
}

TEST_F(ConductorTest, LetsOthersRunOnWhenARankSucceeds) {
  Plan({"while [ ! -e $DIR/go ]; do sleep 0.01; done; echo done", ": > $DIR/go"});
  EXPECT_EQ(MustRun().first_failed, -1);
  EXPECT_EQ(printed_[0], "done\n");
}

TEST_F(ConductorTest, EndsTheOthersWhenThoseHaveSucceededWhoseSuccessIsTheJobs) {
  Plan({"sleep 0.1", kSleep, "exit 0", "trap 'exit 7' TERM; while :; do sleep 0.05; done"});
  plan_.roles = {"chief", "worker", "worker", "ps"};
  plan_.success = {"chief"};
  const Facts facts = MustRun();
  EXPECT_EQ(ExitCode(facts), 0) << VerdictText(facts);
  EXPECT_EQ(facts.ranks[1].ending->signal, SIGTERM);
  EXPECT_EQ(facts.ranks[3].ending->code, 7);
  EXPECT_THAT(said_, ElementsAre("dtrun: every chief has ended with success: asked ranks 1, 3 to end"));
}

TEST_F(ConductorTest, FailsWhenAnyRankFailsBeforeThoseHaveSucceeded) {
  Plan({kSleep, "exit 5"});
  plan_.roles = {"chief", "ps"};
  plan_.success = {"chief"};
  EXPECT_EQ(ExitCode(MustRun()), 5);
}

TEST_F(ConductorTest, KillsARankThatIgnoresSigtermAfterTheGrace) {
  Plan({"trap '' TERM; : > $DIR/armed; while :; do sleep 1000; done",
        "while [ ! -e $DIR/armed ]; do sleep 0.01; done; exit 5"});
  plan_.grace = std::chrono::milliseconds(50);
  const Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 1);
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGKILL);
  EXPECT_EQ(facts.ranks[0].signal_sent, SIGKILL);
  EXPECT_GE(facts.ranks[0].ended_at - facts.ranks[1].ended_at, std::chrono::milliseconds(50));
  EXPECT_THAT(said_, ElementsAre(StartsWith("dtrun: rank 0 did not stop within 50ms: killing; rank 0 ")));
}

TEST_F(ConductorTest, EndsTheGroupOfTheFailedRank) {
  Plan(
      {"(trap '' TERM; : > $DIR/armed; exec sleep 1000) & while [ ! -e $DIR/armed ]; do sleep 0.01; done; "
       "exit 4"});
  const Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 0);
  EXPECT_LT(facts.duration, std::chrono::minutes(1));
}

TEST_F(ConductorTest, StopsAStoppedRank) {
  Plan({"kill -STOP $$; exit 1", "exit 3"});
  EXPECT_EQ(MustRun().first_failed, 1);
}

TEST_F(ConductorTest, ForwardsAnInterruptAndReportsItAsTheCause) {
  Plan({"echo ready; exec sleep 1000", kSleep});
  WhenReady([this] { Send(SIGINT); });
  const Facts facts = MustRun();
  EXPECT_EQ(facts.interrupt, SIGINT);
  EXPECT_EQ(facts.first_failed, -1);
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGINT);
  EXPECT_EQ(facts.ranks[1].ending->signal, SIGINT);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("Ctrl-C again")));
}

TEST_F(ConductorTest, KillsAtOnceOnTheSecondInterrupt) {
  Plan({"trap '' INT; echo ready; while :; do sleep 1000; done"});
  WhenReady([this] { Send(SIGINT); });
  on_say_ = [this] { Send(SIGINT); };
  const Facts facts = MustRun();
  EXPECT_EQ(facts.interrupt, SIGINT);
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGKILL);
}

TEST_F(ConductorTest, TakesADirectSigtermAsARelayedOne) {
  Plan({"echo ready; exec sleep 1000"});
  WhenReady([] { ::kill(::getpid(), SIGTERM); });
  const Facts facts = MustRun();
  EXPECT_EQ(facts.interrupt, SIGTERM);
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGTERM);
}

TEST_F(ConductorTest, OnlyForwardsUserSignals) {
  Plan({"trap 'echo got; exit 0' USR1; echo ready; while :; do sleep 0.01; done"});
  WhenReady([this] { Send(SIGUSR1); });
  const Facts facts = MustRun();
  EXPECT_EQ(facts.interrupt, 0);
  EXPECT_EQ(facts.first_failed, -1);
  EXPECT_EQ(printed_[0], "ready\ngot\n");
}

TEST_F(ConductorTest, StopsTheRanksOnCtrlZAndWakesThem) {
  Plan({"echo ready; exec sleep 1000"});
  WhenReady([this] { Send(SIGTSTP); });
  boost::asio::posix::stream_descriptor guard(loop_, ::dup(control_.ours.get()));
  guard.async_wait(guard.wait_read, [&](const boost::system::error_code&) {
    char message = 0;
    ASSERT_EQ(::recv(control_.ours.get(), &message, 1, 0), 1);
    EXPECT_EQ(message, kMessageStopped);
    const auto marked = testing::Marked(mark_);
    ASSERT_EQ(marked.size(), 1u);
    EXPECT_TRUE(testing::Eventually([&] { return ReadProcess(marked[0])->state == 'T'; }));
    Send(SIGCONT);
    Send(SIGTERM);
  });
  const Facts facts = MustRun();
  EXPECT_EQ(facts.interrupt, SIGTERM);
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGTERM);
}

TEST_F(ConductorTest, KillsEverythingWhenTheGuardIsGone) {
  Plan(
      {"setsid sh -c 'trap \"\" TERM; : > $DIR/up; while :; do sleep 1000; done' &"
       " while [ ! -e $DIR/up ]; do sleep 0.01; done; echo ready; exec sleep 1000",
       "trap '' TERM; while :; do sleep 1000; done"});
  WhenReady([this] { control_.ours.Reset(); });
  const Facts facts = MustRun();
  EXPECT_TRUE(facts.guard_died);
}

TEST_F(ConductorTest, NamesAndStopsWhatARankLeftBehindInItsOwnSession) {
  // It also holds the rank's stdout open, which must not keep the job from ending.
  Plan({"true", "setsid sh -c ': > $DIR/up; kill -STOP $$' & while [ ! -e $DIR/up ]; do sleep 0.01; done"});
  const Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, -1);
  EXPECT_THAT(said_, ElementsAre(MatchesRegex("dtrun: rank 1 left 1 process behind .[0-9]+ sh.: stopped")));
}

TEST_F(ConductorTest, KillsALeftoverThatIgnoresSigterm) {
  Plan(
      {"(trap '' TERM; : > $DIR/up; while :; do sleep 1000; done) & while [ ! -e $DIR/up ]; do sleep 0.01; "
       "done"});
  plan_.grace = std::chrono::milliseconds(20);
  EXPECT_EQ(MustRun().first_failed, -1);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("rank 0 left 2 processes behind")));
}

TEST_F(ConductorTest, GivesStdinToRankZeroOnly) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]), writer(ends[1]);
  ASSERT_EQ(::write(writer.get(), "hello", 5), 5);
  writer.Reset();
  Plan({"cat", "cat"});
  MustRun(reader.get());
  EXPECT_THAT(printed_, ElementsAre("hello", ""));
}

TEST_F(ConductorTest, LosesNothingOfFastOutput) {
  Plan({"head -c 20000000 /dev/zero | tr '\\0' x", "head -c 20000000 /dev/zero | tr '\\0' y >&2"});
  EXPECT_EQ(MustRun().first_failed, -1);
  const auto is_all = [](const std::string& text, char letter) {
    return text.size() == 20000000 && text.find_first_not_of(letter) == std::string::npos;
  };
  EXPECT_TRUE(is_all(printed_[0], 'x'));
  EXPECT_TRUE(is_all(complained_[1], 'y'));
}

TEST_F(ConductorTest, UndoesTheStartWhenARankCannotBeStarted) {
  Plan({kSleep, kSleep, kSleep});
  plan_.processes[2].argv = {"/nowhere/train"};
  const Result<Facts> facts = Run();
  ASSERT_FALSE(facts);
  EXPECT_THAT(facts.error().text, HasSubstr("rank 2: cannot run '/nowhere/train'"));
  EXPECT_THAT(testing::Marked(mark_), IsEmpty());
}

TEST_F(ConductorTest, NotesWhatTheStoreTells) {
  Plan({"echo ready; exit 0", "exit 0"});
  WhenReady([this] {
    conductor_->Joined(0);
    conductor_->Left(0);
    conductor_->Reported(1, 0, "connection reset by rank 0");
    conductor_->Joined(99);
  });
  const Facts facts = MustRun();
  EXPECT_TRUE(facts.ranks[0].joined);
  EXPECT_TRUE(facts.ranks[0].left);
  EXPECT_FALSE(facts.ranks[1].joined);
  ASSERT_EQ(facts.ranks[1].reports.size(), 1u);
  EXPECT_EQ(facts.ranks[1].reports[0].peer, 0);
}

// Ranks that speak PMI-1 themselves: `say REQUEST` waits for its answer.
constexpr char kSay[] = "say() { printf '%s\\n' \"$1\" >&3; read -r answer <&3; }; ";
constexpr char kInit[] = "say 'cmd=init pmi_version=1 pmi_subversion=1'; ";

TEST_F(ConductorTest, ServesMpiLibrariesFromInitToFinalize) {
  const std::string whole =
      std::string(kSay) + kInit +
      "say \"cmd=put kvsname=x key=k$DTRUN_RANK value=v$DTRUN_RANK\"; say cmd=barrier_in; "
      "say \"cmd=get kvsname=x key=k$((1 - DTRUN_RANK))\"; echo $answer; say cmd=finalize";
  Plan({whole, whole});
  plan_.pmi = pmi::Kind::kPmi1;
  EXPECT_EQ(MustRun().first_failed, -1);
  EXPECT_THAT(printed_, ElementsAre("cmd=get_result rc=0 msg=success value=v1\n",
                                    "cmd=get_result rc=0 msg=success value=v0\n"));
}

TEST_F(ConductorTest, FailsARankThatLeavesMpiWithoutTheOthers) {
  // The others come to MPI_Init before it has left, and after.
  for (const std::string wait : {"while [ ! -e $DIR/came ]; do sleep 0.01; done", ":"}) {
    Plan(
        {kSay + (wait == ":" ? std::string("sleep 0.1; ") : "") + kInit + ": > $DIR/came; say cmd=barrier_in",
         wait});
    plan_.pmi = pmi::Kind::kPmi1;
    const Facts facts = MustRun();
    EXPECT_EQ(facts.first_failed, 1);
    EXPECT_EQ(facts.ranks[1].ending->desertion, Desertion::kBeforeInit);
    EXPECT_FALSE(facts.ranks[0].ending->desertion == Desertion::kBeforeFinalize);
    owned_.clear();
  }
}

TEST_F(ConductorTest, FailsARankThatDoesNotFinalizeMpi) {
  Plan({std::string(kSay) + kInit, kSleep});
  plan_.pmi = pmi::Kind::kPmi1;
  const Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 0);
  EXPECT_EQ(facts.ranks[0].ending->desertion, Desertion::kBeforeFinalize);
}

TEST_F(ConductorTest, EndsARankThatWaitsAfterMpiAbort) {
  Plan({kSay + std::string(kInit) + "say 'cmd=abort exitcode=7'; exit 3", kSleep});
  plan_.pmi = pmi::Kind::kPmi1;
  const Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 0);
  ASSERT_TRUE(facts.ranks[0].abort);
  EXPECT_EQ(facts.ranks[0].abort->code, 7);
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGTERM);
}

// A host of one process that tells what it is told to.
class ScriptedHost final : public Host {
 public:
  ScriptedHost(boost::asio::io_context& loop, std::vector<Event> at_start, std::vector<Event> at_stop)
      : loop_(loop), at_start_(std::move(at_start)), at_stop_(std::move(at_stop)) {}

  void Do(const Command& command) override {
    if (std::holds_alternative<Prepare>(command)) Post({Prepared()});
    if (std::holds_alternative<Start>(command)) Post(at_start_);
    if (std::holds_alternative<Stop>(command)) Post(at_stop_);
  }

 private:
  void Post(const std::vector<Event>& events) {
    for (const Event& event : events) boost::asio::post(loop_, [this, event] { Emit(event); });
  }

  boost::asio::io_context& loop_;
  const std::vector<Event> at_start_, at_stop_;
};

constexpr Ending kTerminated{0, SIGTERM};

TEST_F(ConductorTest, EndsRanksThatShouldHaveJoinedLongAgoWhereThatFailsTheJob) {
  Plan({""});
  ScriptedHost host(
      loop_, {Started{{1}}, Looked{false, {"PyTorch"}, false, false}, Looked{false, {"PyTorch"}, true, true}},
      {Ended{0, kTerminated, SIGTERM}, Gone()});
  Conductor conductor(loop_, signals_, plan_, {&host}, [](const std::string&) {});
  ASSERT_TRUE(conductor.Prepare(0, std::string(64, '0')));
  World world;
  world.tokens.resize(1);
  world.outputs.push_back(std::make_unique<Keeper>(*owned_[0]));
  world.lone_worlds = LoneWorldsPolicy::kFail;
  const Result<Facts> facts = conductor.Run(std::move(world));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->first_failed, -1);
  ASSERT_TRUE(facts->lone_worlds);
  EXPECT_THAT(facts->lone_worlds->what, HasSubstr("PyTorch"));
}

// What an mpirun has started on two hosts, the second of which is heard of late.
Result<Facts> RunMpirun(boost::asio::io_context& loop, UserSignals& signals, plan::Plan plan,
                        std::vector<std::unique_ptr<testing::MemoryOutput>>& outputs, const Event& first,
                        const Event& then) {
  plan.hosts.push_back({"node1", 1, 1});
  plan.processes[1].host = 1;
  for (plan::Process& process : plan.processes) process.env["DTRUN_RANK_OUTPUTS"] = "1";
  const bool ended = std::holds_alternative<Ended>(first);
  const Event end = Ended{0, kTerminated, SIGTERM};
  ScriptedHost root(
      loop, ended ? std::vector<Event>{Started{{1}}, first, Gone()} : std::vector{Event(Started{{1}}), first},
      ended ? std::vector<Event>() : std::vector{end, Event(Gone())});
  ScriptedHost other(loop, {Started{{2}}}, {then, Ended{1, kTerminated, SIGTERM}, Gone()});
  Conductor conductor(loop, signals, plan, {&root, &other}, [](const std::string&) {});
  if (auto prepared = conductor.Prepare(0, std::string(64, '0')); !prepared) return prepared.error();
  World world;
  world.tokens.resize(2);
  for (auto& output : outputs) world.outputs.push_back(std::make_unique<Keeper>(*output));
  return conductor.Run(std::move(world));
}

TEST_F(ConductorTest, BlamesTheRankWhoseEndMadeAnMpirunEndItselfOrOthers) {
  Plan({"", ""});
  const Event late = RankEnded{1, 4242, {7, 0}};
  for (const Event& first : {Event(Ended{0, {7, 0}}), Event(RankEnded{0, 4241, kTerminated})}) {
    const Result<Facts> facts = RunMpirun(loop_, signals_, plan_, owned_, first, late);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->first_failed, 1);
    ASSERT_TRUE(facts->ranks[1].failed);
    EXPECT_EQ(facts->ranks[1].failed->pid, 4242);
    EXPECT_EQ(facts->ranks[1].ending->code, 7);
    EXPECT_EQ(facts->ranks[1].signal_sent, 0);
  }
}

TEST_F(ConductorTest, BlamesNoRankThatFailedAfterwards) {
  Plan({"", ""});
  const Event killed = Ended{0, {0, SIGKILL}};  // the mpirun itself
  const Event first = RankEnded{0, 4241, {3, 0}};
  const Event late = RankEnded{1, 4242, {7, 0}};
  for (const auto& [before, then] :
       {std::pair(first, late), {killed, late}, {first, Event(RankEnded{1, 4242, kTerminated})}}) {
    const Result<Facts> facts = RunMpirun(loop_, signals_, plan_, owned_, before, then);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->first_failed, 0);
    EXPECT_FALSE(facts->ranks[1].failed);
  }
}

TEST_F(ConductorTest, RunsAsManyGenerationsAsItIsAsked) {
  Plan({"exit 3"});
  EXPECT_EQ(MustRun().first_failed, 0);
  ASSERT_TRUE(conductor_->Prepare(1, std::string(64, '1')));
  World world;
  world.tokens.resize(1);
  world.outputs.push_back(std::make_unique<Keeper>(*owned_[0]));
  const Result<Facts> facts = conductor_->Run(std::move(world));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->generation, 1u);
  EXPECT_EQ(facts->ranks[0].ending->code, 3);
}

TEST_F(ConductorTest, EndsAWaitWhenTheUserDoes) {
  Plan({"exit 3"});
  MustRun();
  EXPECT_TRUE(conductor_->Wait(std::chrono::milliseconds(1)));
  Send(SIGINT);
  EXPECT_FALSE(conductor_->Wait(std::chrono::hours(1)));
  EXPECT_EQ(conductor_->interrupted(), SIGINT);
}

TEST_F(ConductorTest, ReplacesVariablesOfItsOwnEnvironment) {
  ::setenv("DTRUN_TEST_COLOUR", "red", 1);
  Plan({"env | grep -c ^DTRUN_TEST_COLOUR; echo $DTRUN_TEST_COLOUR", "echo $DTRUN_TEST_COLOUR"});
  plan_.processes[0].env["DTRUN_TEST_COLOUR"] = "blue";
  MustRun();
  ::unsetenv("DTRUN_TEST_COLOUR");
  EXPECT_THAT(printed_, ElementsAre("1\nblue\n", "red\n"));
}

}  // namespace
}  // namespace dtrun::agent
