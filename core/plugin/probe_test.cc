#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "core/options/snapshot.h"
#include "core/plugin/plugin.h"
#include "core/plugin/testing/support.h"

namespace dtrun::plugin {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class ProbeTest : public ::testing::Test {
 protected:
  void SetUp() override { SetProbeProgram(DTRUN_TEST_PROBE); }
  void TearDown() override { SetProbeDeadline(std::chrono::seconds(10)); }

  static dtrun_options Options(const std::string& interface) {
    dtrun_options options;
    options::Spec spec;
    spec.key = "interface";
    options.entries["interface"] = {spec, {interface, {}}, {}};
    return options;
  }
  static std::string ErrorOf(const std::string& name) {
    auto probe = Probe::Start(testing::Built(name));
    return probe ? "it was described" : probe.error().text;
  }
};

TEST_F(ProbeTest, DescribesAPlugin) {
  auto probe = Probe::Start(testing::Built("demo"));
  ASSERT_TRUE(probe.ok()) << probe.error().text;
  const Description& description = (*probe)->description();
  EXPECT_EQ(description.file.name, "demo");
  EXPECT_EQ(description.file.origin, "test");
  EXPECT_EQ(description.version, "1.2.3");
  EXPECT_EQ(description.vendor, "dtrun tests");
  EXPECT_EQ(description.license, "MIT");
  EXPECT_EQ(description.summary, "a backend that moves nothing");
  EXPECT_EQ(description.abi, testing::Abi());
  ASSERT_EQ(description.options.size(), 2u);
  EXPECT_EQ(description.options[1].key, "backend.options.retries");
  EXPECT_EQ(description.options[1].type, options::Type::kUint);
  EXPECT_EQ(description.options[1].max_text, "9");
}

TEST_F(ProbeTest, NamesAVariableThatNoRankCanHave) {
  for (const auto& [name, says] :
       {std::pair("launch_null",
                  "backend plugin 'launch_null': it sets the variable 'DEMO_RANK' to no value"),
        {"launch_long", "it sets the variable 'DEMO_LONG' to 200000 bytes, and Linux allows 131070"},
        {"launch_twice", "backend plugin 'launch_twice': it sets the variable 'DEMO_INTERFACE' twice"}}) {
    auto probe = Probe::Start(testing::Built(name));
    ASSERT_TRUE(probe.ok()) << probe.error().text;
    const auto info = (*probe)->Launch(Options("eth7"), 1, 1);
    ASSERT_FALSE(info.ok()) << name;
    EXPECT_THAT(info.error().text, HasSubstr(says));
  }
}

// Runs as a separate user, because root has no such limit and this user may have other processes.
TEST_F(ProbeTest, NamesTheLimitThatLeavesItNoProcess) {
  constexpr uid_t kLimited = 4243;
  constexpr rlim_t kSelfAndKeeper = 2;
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit most{kSelfAndKeeper, kSelfAndKeeper};
    const bool limited = ::setrlimit(RLIMIT_NPROC, &most) == 0 &&
                         ::setresgid(kLimited, kLimited, kLimited) == 0 &&
                         ::setresuid(kLimited, kLimited, kLimited) == 0;
    const std::string text = limited ? ErrorOf("demo") : "the test could not become another user";
    ::_exit(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(ends[0], text.data(), text.size()), 0)));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(text, AllOf(HasSubstr("resource temporarily unavailable; raise `ulimit -u`"),
                          Not(HasSubstr("author"))));
}

// The plugin leaves a process in a separate session, then answers or crashes.
TEST_F(ProbeTest, LeavesNoProcessOfThePlugin) {
  for (const char* name : {"launch_daemon", "crash_daemon"}) {
    const testing::TempFolder folder;
    const std::string file = folder.path() / "pid";
    ASSERT_EQ(::setenv("DEMO_DAEMON", file.c_str(), 1), 0);
    {
      auto probe = Probe::Start(testing::Built(name));
      ASSERT_TRUE(probe.ok()) << probe.error().text;
      const auto info = (*probe)->Launch(Options("eth7"), 1, 1);
      EXPECT_EQ(info.ok(), name == std::string("launch_daemon")) << name;
    }
    pid_t pid = 0;
    std::ifstream(file) >> pid;
    ASSERT_GT(pid, 0) << name;
    EXPECT_NE(::kill(pid, 0), 0) << name << " has left process " << pid;
  }
}

TEST_F(ProbeTest, AsksADevicePluginForItsDevices) {
  auto probe = Probe::Start(testing::BuiltDevice());
  ASSERT_TRUE(probe.ok()) << probe.error().text;
  EXPECT_EQ((*probe)->description().summary, "a device that is the host");
  const auto info = (*probe)->Devices();
  ASSERT_TRUE(info.ok()) << info.error().text;
  EXPECT_THAT(info->facts, ElementsAre(Pair("kind", "device kind 33"), Pair("devices", "2"),
                                       Pair("device 0", "demo number 0"), Pair("device 1", "demo number 1")));
  EXPECT_EQ(Unusable(*info), "");
  EXPECT_NE(info->file_id, "");
}

TEST_F(ProbeTest, SaysWhyThereIsNoDevice) {
  auto probe = Probe::Start(testing::BuiltDevice(), {"DTRUN_TEST_NO_DEVICE=1"});
  ASSERT_TRUE(probe.ok()) << probe.error().text;
  const auto info = (*probe)->Devices();
  ASSERT_TRUE(info.ok()) << info.error().text;
  EXPECT_EQ(Unusable(*info), "the demo is switched off; unset DTRUN_TEST_NO_DEVICE");
}

TEST_F(ProbeTest, AsksForLaunchInformationMoreThanOnce) {
  auto probe = Probe::Start(testing::Built("demo"));
  ASSERT_TRUE(probe.ok()) << probe.error().text;
  for (const char* interface : {"eth0", "lo"}) {
    const auto info = (*probe)->Launch(Options(interface), 3, 2);
    ASSERT_TRUE(info.ok()) << info.error().text;
    EXPECT_THAT(info->facts,
                ElementsAre(Pair("library", "demo 1.2"), Pair("hosts", "three"), Pair("in_probe", "yes")));
    EXPECT_THAT(info->env, ElementsAre(Pair("DEMO_INTERFACE", interface)));
  }
}

TEST_F(ProbeTest, ReportsTheSignalOfACrashAndTheLastWords) {
  EXPECT_THAT(ErrorOf("entry_crashes"), AllOf(HasSubstr(testing::Built("entry_crashes").path.string()),
                                              HasSubstr("crashed with signal 11 (SIGSEGV) while loading"),
                                              HasSubstr("'one line | about to crash'")));
}

TEST_F(ProbeTest, ReportsACrashInLaunchInfo) {
  auto probe = Probe::Start(testing::Built("launch_crashes"));
  ASSERT_TRUE(probe.ok()) << probe.error().text;
  const auto info = (*probe)->Launch(Options("lo"), 1, 1);
  ASSERT_FALSE(info.ok());
  EXPECT_THAT(info.error().text,
              AllOf(HasSubstr("SIGSEGV) while asked for its launch information"), HasSubstr("no device")));
  const auto again = (*probe)->Launch(Options("lo"), 1, 1);
  EXPECT_FALSE(again.ok());
}

TEST_F(ProbeTest, PassesOnThePluginsOwnErrors) {
  auto probe = Probe::Start(testing::Built("launch_fails"));
  ASSERT_TRUE(probe.ok()) << probe.error().text;
  const auto info = (*probe)->Launch(Options("lo"), 1, 1);
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.error().code, DTRUN_VENDOR);
  EXPECT_THAT(info.error().text, HasSubstr("'launch_fails': vendor library refused"));
  EXPECT_THAT(ErrorOf("other_minor"), HasSubstr("built for ABI " + testing::Abi(1)));
}

TEST_F(ProbeTest, ReportsAPluginThatEndsTheProcess) {
  EXPECT_THAT(ErrorOf("entry_exits"), HasSubstr("ended the process with exit code 7 while loading"));
}

TEST_F(ProbeTest, SaysThatAPluginHasClosedWhatIsNotItsOwn) {
  EXPECT_THAT(ErrorOf("entry_closes"), AllOf(HasSubstr("closed a descriptor that is not its own"),
                                             HasSubstr("while loading"), Not(HasSubstr("`dmesg`"))));
}

TEST_F(ProbeTest, SaysThatAPluginForksAndLetsTheCopyGoOn) {
  EXPECT_THAT(ErrorOf("entry_forks"),
              AllOf(HasSubstr("'entry_forks'"), HasSubstr("makes a copy of the process by fork")));
}

TEST_F(ProbeTest, EndsAPluginThatHangs) {
  SetProbeDeadline(std::chrono::milliseconds(300));
  EXPECT_THAT(ErrorOf("entry_hangs"), HasSubstr("gave no answer in 300ms while loading"));
}

TEST_F(ProbeTest, SaysThatItWasStopped) {
  SetProbeDeadline(std::chrono::seconds(3));  // long enough to reach this point on a busy machine
  EXPECT_THAT(ErrorOf("entry_stops"), AllOf(HasSubstr("was stopped by signal 19 (SIGSTOP)"),
                                            HasSubstr("while loading"), Not(HasSubstr("author"))));
}

TEST_F(ProbeTest, BlamesNoPluginForASignalThatIsOnlySent) {
  EXPECT_THAT(ErrorOf("entry_killed"),
              AllOf(HasSubstr("was killed by signal 9 (SIGKILL) while loading"), HasSubstr("`dmesg`"),
                    Not(HasSubstr("crashed")), Not(HasSubstr("author"))));
}

TEST_F(ProbeTest, NamesAProgramThatCannotBeStarted) {
  SetProbeProgram("/nonexistent/dtrun");
  EXPECT_THAT(ErrorOf("demo"),
              HasSubstr("start the plugin probe '/nonexistent/dtrun': no such file or directory"));
}

TEST_F(ProbeTest, LeavesOrdinaryArgumentsToTheProgram) {
  std::string arguments[] = {"dtrun", "--config"};
  char* argv[] = {arguments[0].data(), arguments[1].data(), nullptr};
  EXPECT_EQ(ProbeMain(2, argv), -1);
}

}  // namespace
}  // namespace dtrun::plugin
