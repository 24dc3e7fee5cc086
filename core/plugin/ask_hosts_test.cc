#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/options/snapshot.h"
#include "core/plugin/plugin.h"
#include "core/plugin/testing/support.h"

namespace dtrun::plugin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Runs the launcher of bad_launcher.c in a probe.
class AskHostsTest : public ::testing::Test {
 protected:
  void SetUp() override { SetProbeProgram(DTRUN_TEST_PROBE); }
  void TearDown() override { SetProbeDeadline(std::chrono::seconds(10)); }

  static Result<hosts::Allocation> Find(const hosts::Environment& environment) {
    auto probe = Probe::Start(Bad());
    return probe ? (*probe)->FindHosts({}, environment) : probe.error();
  }
  static Error FindError(const std::string& fault) {
    const auto found = Find({{"FAULT", fault}});
    return found ? Error{DTRUN_OK, "it found hosts"} : found.error();
  }
  static Result<std::vector<hosts::StartCommand>> Connect(const std::string& fault) {
    auto probe = Probe::Start(Bad());
    if (!probe) return probe.error();
    return (*probe)->Connect({}, {{"node1", "node2"}, {"/opt/dtrun", "agent"}, {{"FAULT", fault}}});
  }

 private:
  static File Bad() {
    File file = testing::Built("demo");
    file.path = file.path.parent_path() / "libdtrun_launcher_bad.so";
    file.kind = Kind::kLauncher;
    file.name = "bad";
    return file;
  }
};

TEST_F(AskHostsTest, TakesHostsAsThePluginHasThem) {
  const auto found = Find({{"FAULT", "none"}});
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->hosts, (std::vector<hosts::HostSlots>{{"node0", 4}, {"node1", {}}}));
  EXPECT_EQ(found->count, (hosts::HostCount{2, 2}));
  EXPECT_TRUE(found->everywhere);
  EXPECT_EQ(found->own_index, 1);
  EXPECT_EQ(found->rank_port, 29500);
  EXPECT_EQ(found->root_address, "node0");
  EXPECT_THAT(found->implies, ElementsAre("pmi"));
}

TEST_F(AskHostsTest, TellsAnAbsentPlatformFromOneThatContradictsItself) {
  const auto absent = Find({});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, DTRUN_NOT_FOUND);
  EXPECT_THAT(absent.error().text, HasSubstr("launcher 'bad': FAULT is unset"));
  const Error contradiction = FindError("contradicts");
  EXPECT_EQ(contradiction.code, DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(contradiction.text, AllOf(HasSubstr("A=1, B=2"), Not(HasSubstr("\x1b"))));
}

TEST_F(AskHostsTest, NamesAnswersThatNoJobCanHave) {
  for (const auto& [fault, text] :
       {std::pair("silent", "it found hosts and names none"), std::pair("slots", "host 'node0' has -1 slots"),
        std::pair("name", "host 1: "), std::pair("null-name", "host 1: "),
        std::pair("twice", "the host 'node0' twice"),
        std::pair("stride", "its first host says that it has 12 bytes"),
        std::pair("host-flags", "host 1: its flags are 0x100000"), std::pair("many", "it has 100000 hosts"),
        std::pair("must-understand", "its flags are 0x2030000"), std::pair("index", "this is host 2 of 2"),
        std::pair("port", "port 70000"), std::pair("count", "it has from 3 to 2 hosts"),
        std::pair("answers-twice", "it answers twice")}) {
    const Error error = FindError(fault);
    EXPECT_EQ(error.code, DTRUN_INTERNAL) << fault;
    EXPECT_THAT(error.text, AllOf(HasSubstr("launcher 'bad' gave an impossible answer: "), HasSubstr(text),
                                  HasSubstr("author")))
        << fault;
  }
}

TEST_F(AskHostsTest, SurvivesACrashAndAHang) {
  EXPECT_THAT(FindError("crashes").text, HasSubstr("crashed with signal 11 (SIGSEGV) while finding hosts"));
  SetProbeDeadline(std::chrono::milliseconds(300));
  EXPECT_THAT(FindError("hangs").text, HasSubstr("gave no answer in 300ms while finding hosts"));
}

TEST_F(AskHostsTest, TakesCommandsAsThePluginHasThem) {
  const auto commands = Connect("none");
  ASSERT_TRUE(commands) << commands.error().text;
  ASSERT_EQ(commands->size(), 1u);
  EXPECT_THAT(commands->front().argv, ElementsAre("there", "/opt/dtrun", "agent"));
  EXPECT_THAT(commands->front().hosts, ElementsAre(0u, 1u));
  EXPECT_EQ(commands->front().host_variable, "NODE");
}

TEST_F(AskHostsTest, NamesCommandsThatDoNotStartEachHostOnce) {
  for (const auto& [fault, text] :
       {std::pair("refuses", "launcher 'bad': JOB is unset"),
        std::pair("forgets", "host 'node2' is started by no command"),
        std::pair("repeats", "host 'node1' is started more than once"),
        std::pair("index", "'there' starts host 9 of 2"), std::pair("no-program", "a command has no program"),
        std::pair("null-argument", "argument 2 of a command is null")}) {
    const auto commands = Connect(fault);
    ASSERT_FALSE(commands) << fault;
    EXPECT_THAT(commands.error().text, HasSubstr(text)) << fault;
  }
}

}  // namespace
}  // namespace dtrun::plugin
