// What every launcher must do that finds hosts or connects to them. Without the variables of a platform
// (BackendUnderTest::environment) only what holds where the platform is not there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "guard.h"
#include "hosts_query.h"
#include "process_state.h"
#include "suite.h"
#include "written.h"

namespace dtrun::conformance {
namespace {

using Under = BackendUnderTest;

constexpr const char* kGiveVariables = "; give the variables of an allocation with --env NAME=VALUE";

// Has the member answer in the environment of the test, and gives what it said to `body`. A launcher that
// lacks the member, or its platform, has no case.
template <class Member, class Body>
void WithAnswer(const Under& under_test, Body&& body) {
  std::vector<std::string> hosts;
  if constexpr (std::is_same_v<Member, ConnectMember>) {
    Asking<FindHostsMember> finding(under_test);
    if (finding.Has()) hosts = finding.Ask(under_test.environment).hosts;
  }
  Asking<Member> asking(under_test);
  if (!asking.Has()) GTEST_SKIP() << "the launcher has no " << Member::kName;
  if (!hosts.empty()) asking.SetHosts(hosts);
  const Answer answer = asking.Ask(under_test.environment);
  const bool no_platform = answer.status == DTRUN_NOT_FOUND || answer.status == DTRUN_FAILED_PRECONDITION;
  if (no_platform && (under_test.environment.empty() || std::is_same_v<Member, ConnectMember>))
    GTEST_SKIP() << answer.message << kGiveVariables;
  ASSERT_EQ(answer.status, DTRUN_OK) << answer.message;
  body(asking, answer);
}

// The variables of the test are in the process, where they say nothing, and not in the query.
class InTheProcess {
 public:
  explicit InTheProcess(const Variables& variables) {
    for (const auto& [name, value] : variables) {
      const char* const now = std::getenv(name.c_str());
      before_[name] = now == nullptr ? std::nullopt : std::optional<std::string>(now);
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~InTheProcess() {
    for (const auto& [name, value] : before_) {
      if (value)
        setenv(name.c_str(), value->c_str(), 1);
      else
        unsetenv(name.c_str());
    }
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

void NothingIsFoundWithoutThePlatform(const Under& under_test) {
  Asking<FindHostsMember> asking(under_test);
  if (!asking.Has()) GTEST_SKIP() << "the launcher has no find_hosts";
  const Answer none = asking.Ask({});
  EXPECT_EQ(none.status, DTRUN_NOT_FOUND) << "in an empty environment: " << none.message;
  EXPECT_TRUE(none.parts.empty()) << "it gave an allocation: " << none.Text();
  const InTheProcess hidden(under_test.environment);
  EXPECT_EQ(asking.Ask({}).Text(), none.Text()) << "with variables that only the process has";
}

void NothingConnectsWithoutAText(const Under& under_test) {
  Asking<ConnectMember> asking(under_test);
  if (!asking.Has()) GTEST_SKIP() << "the launcher has no connect";
  const Answer none = asking.Ask({});
  const InTheProcess hidden(under_test.environment);
  EXPECT_EQ(asking.Ask({}).Text(), none.Text()) << "with variables that only the process has";
}

// Again in the same instance, in another one, in another folder, in another process.
template <class Member>
void AnswersAreEqual(const Under& under_test) {
  WithAnswer<Member>(under_test, [&](Asking<Member>& asking, const Answer& answer) {
    const Variables& variables = under_test.environment;
    EXPECT_EQ(asking.Ask(variables).Text(), answer.Text()) << "the second time";
    Asking<Member> other(under_test);
    other.SetHosts(asking.hosts());
    EXPECT_EQ(other.Ask(variables).Text(), answer.Text()) << "in another instance";
    const std::filesystem::path folder = std::filesystem::current_path();
    std::filesystem::current_path("/");
    const std::string elsewhere = asking.Ask(variables).Text();
    std::filesystem::current_path(folder);
    EXPECT_EQ(elsewhere, answer.Text()) << "in another working folder";
    EXPECT_EQ(InAnotherProcess([&] { return asking.Ask(variables).Text(); }), answer.Text())
        << "in another process";
  });
}

void AllocationsArePossible(const Under& under_test) {
  WithAnswer<FindHostsMember>(under_test, [](Asking<FindHostsMember>&, const Answer& answer) {
    EXPECT_EQ(answer.parts.size(), 1u) << "allocations";
    for (const std::string& problem : answer.problems) ADD_FAILURE() << problem;
  });
}

void EachHostIsStartedOnce(const Under& under_test) {
  WithAnswer<ConnectMember>(under_test, [](Asking<ConnectMember>&, const Answer& answer) {
    for (const std::string& problem : answer.problems) ADD_FAILURE() << problem;
    for (std::size_t host = 0; host < answer.started.size(); ++host)
      EXPECT_EQ(answer.started[host], 1)
          << "commands that start host " << host << " of " << answer.started.size();
  });
}

template <class Member>
void NothingIsTouched(const Under& under_test) {
  Asking<Member> first(under_test);
  if (!first.Has()) GTEST_SKIP() << "the launcher has no " << Member::kName;
  const EmptyFolder folder;
  const ProcessState fresh = ProcessState::Now();
  first.Ask(under_test.environment);
  EXPECT_EQ(Changes(fresh, ProcessState::Now(), false), "") << "by the first call in this process";
  EXPECT_EQ(folder.Contents(), "") << "files of the plugin in its working folder, HOME or TMPDIR";
  WithAnswer<Member>(under_test, [&](Asking<Member>& asking, const Answer&) {
    const ProcessState before = ProcessState::Now();
    asking.Ask(under_test.environment);
    EXPECT_EQ(Changes(before, ProcessState::Settled(before.threads), true), "");
  });
}

template <class Member>
void ARefusalComesBack(const Under& under_test) {
  WithAnswer<Member>(under_test, [&](Asking<Member>& asking, const Answer&) {
    int calls = 0;
    const auto query = asking.MakeQuery();
    const auto sink = Member::Refusing(&calls);
    for (const std::size_t bytes : Sizes<dtrun_error>()) {
      dtrun_error empty;
      DTRUN_ERROR_INIT(empty);
      const Guarded<dtrun_error> error("dtrun_error", empty, bytes);
      calls = 0;
      EXPECT_EQ(asking.Call(under_test.environment, &query, &sink, error.get()), DTRUN_OUT_OF_MEMORY);
      EXPECT_EQ(calls, 1) << "calls of the sink; its failure is final";
      EXPECT_EQ(error.Damage(), "") << "a dtrun_error of " << bytes << " bytes";
      EXPECT_STREQ(error.get()->message, "no room for it");
    }
    EXPECT_EQ(asking.Call(under_test.environment, &query, &sink, nullptr), DTRUN_OUT_OF_MEMORY)
        << "without a dtrun_error";
  });
}

template <class Member>
void StructsOfAnotherSizeFit(const Under& under_test) {
  WithAnswer<Member>(under_test, [&](Asking<Member>& asking, const Answer& answer) {
    const auto query = asking.MakeQuery();
    const auto ask = [&](const auto* in, const auto* out, Answer* same) {
      same->started.resize(asking.hosts().size());
      asking.Finish(under_test.environment, in, out, same);
    };
    for (const std::size_t bytes : Sizes<typename Member::Query>()) {
      SCOPED_TRACE(std::string("a ") + Member::kQuery + " of " + std::to_string(bytes) + " bytes");
      const Guarded<typename Member::Query> guarded(Member::kQuery, query, bytes);
      Answer same;
      const auto sink = Member::Into(&same);
      ask(guarded.get(), &sink, &same);
      EXPECT_EQ(guarded.Writes(), "");
      if (bytes >= sizeof query) {
        EXPECT_EQ(same.Text(), answer.Text());
      }
    }
    for (const std::size_t bytes : Sizes<typename Member::Sink>()) {
      SCOPED_TRACE(std::string("a ") + Member::kSink + " of " + std::to_string(bytes) + " bytes");
      Answer same;
      const Guarded<typename Member::Sink> guarded(Member::kSink, Member::Into(&same), bytes);
      ask(&query, guarded.get(), &same);
      EXPECT_EQ(guarded.Writes(), "");
      EXPECT_EQ(same.Text(), answer.Text());
    }
  });
}

template <class Member>
void StrangeFlagsAreRefused(const Under& under_test) {
  WithAnswer<Member>(under_test, [&](Asking<Member>& asking, const Answer& answer) {
    for (const auto& [flag, name] :
         {std::pair(1u << 30, "with bit 30"), {1u << 14, "with bit 14, a hint,"}}) {
      for (const bool in_sink : {false, true}) {
        SCOPED_TRACE(std::string(name) + " in a " + (in_sink ? Member::kSink : Member::kQuery));
        auto query = asking.MakeQuery();
        Answer said;
        said.started.resize(asking.hosts().size());
        auto sink = Member::Into(&said);
        (in_sink ? sink.flags : query.flags) = flag;
        asking.Finish(under_test.environment, &query, &sink, &said);
        if (flag == 1u << 14) {
          EXPECT_EQ(said.Text(), answer.Text());
        } else {
          EXPECT_EQ(said.status, DTRUN_UNSUPPORTED) << said.message;
          EXPECT_TRUE(said.parts.empty());
        }
      }
    }
  });
}

}  // namespace

void AddHostsCases(const BackendUnderTest& launcher) {
  AddCase("Hosts", "AreNotFoundWithoutThePlatform", "L7, L8", launcher,
          [=] { NothingIsFoundWithoutThePlatform(launcher); });
  AddCase("Hosts", "AreOnePossibleAllocation", "L8, L9, S1, S15", launcher,
          [=] { AllocationsArePossible(launcher); });
  AddCase("Hosts", "AreTheSameEachTime", "L9", launcher, [=] { AnswersAreEqual<FindHostsMember>(launcher); });
  AddCase("Hosts", "AreFoundWithoutATrace", "L5, T7", launcher,
          [=] { NothingIsTouched<FindHostsMember>(launcher); });
  AddCase("Hosts", "PassOnARefusal", "L6, B25, E3, E4", launcher,
          [=] { ARefusalComesBack<FindHostsMember>(launcher); });
  AddCase("Hosts", "TakeStructsOfAnotherSize", "S2, S11", launcher,
          [=] { StructsOfAnotherSizeFit<FindHostsMember>(launcher); });
  AddCase("Hosts", "RefuseFlagsThatMustBeUnderstood", "S6", launcher,
          [=] { StrangeFlagsAreRefused<FindHostsMember>(launcher); });
  AddCase("Connect", "ReadsTheQueryOnly", "L7, L10", launcher,
          [=] { NothingConnectsWithoutAText(launcher); });
  AddCase("Connect", "StartsEachHostOnce", "L10, S1, S15", launcher,
          [=] { EachHostIsStartedOnce(launcher); });
  AddCase("Connect", "SaysTheSameEachTime", "L10", launcher,
          [=] { AnswersAreEqual<ConnectMember>(launcher); });
  AddCase("Connect", "LeavesNoTrace", "L5, T7", launcher, [=] { NothingIsTouched<ConnectMember>(launcher); });
  AddCase("Connect", "PassesOnARefusal", "L6, B25, E3, E4", launcher,
          [=] { ARefusalComesBack<ConnectMember>(launcher); });
  AddCase("Connect", "TakesStructsOfAnotherSize", "S2, S11", launcher,
          [=] { StructsOfAnotherSizeFit<ConnectMember>(launcher); });
  AddCase("Connect", "RefusesFlagsThatMustBeUnderstood", "S6", launcher,
          [=] { StrangeFlagsAreRefused<ConnectMember>(launcher); });
}

}  // namespace dtrun::conformance
