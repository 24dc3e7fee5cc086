#include "core/comm/plugin_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "core/contract/mapping.h"

namespace dtrun::comm {
namespace {

using std::chrono::milliseconds;

void Say(const Error& failure) { fprintf(stderr, "reported: %s\n", failure.text.c_str()); }

TEST(PluginCall, EndsAProcessWhosePluginDoesNotReturn) {
  const auto hang = [] {
    PluginCall call("backend 'slow', in its init", milliseconds(50), Say);
    for (;;) ::pause();
  };
  EXPECT_EXIT(hang(), ::testing::ExitedWithCode(PluginCall::kExitCode),
              "reported: backend 'slow', in its init, has not returned for 50ms, far beyond backend.timeout");
}

// Says which call of rank 0 is overdue, once one is.
[[noreturn]] void ExitWhenOverdue(const contract::RecorderMapping& recorder) {
  std::string overdue;
  while (overdue.empty()) {
    overdue = contract::MembersOverdue(recorder.recorder_memory(), 0, {}).members;
    ::usleep(10'000);
  }
  fprintf(stderr, "overdue: %s\n", overdue.c_str());
  ::_exit(3);
}

TEST(HangWatch, NotesACallThatIsOverdue) {
  const contract::RecorderMapping recorder = *contract::RecorderMapping::Create(1);
  const auto hang = [&] {
    contract::MemberMarks::Use(recorder.fd(), 0);
    const HangWatch watch(Say);
    const PluginCall call("backend 'slow', in its init", std::chrono::hours(1), Say, {}, milliseconds(1));
    ExitWhenOverdue(recorder);
  };
  EXPECT_EXIT(hang(), ::testing::ExitedWithCode(3), "^overdue: backend 'slow', in its init\n$");
}

// Of a wrapper, which has made the call inside.
TEST(HangWatch, NotesACallInsideThatOutlastsTheTimeOfTheOuterOne) {
  const contract::RecorderMapping recorder = *contract::RecorderMapping::Create(1);
  const auto hang = [&] {
    contract::MemberMarks::Use(recorder.fd(), 0);
    const HangWatch watch(Say);
    const PluginCall outer("backend 'delay', in its init", std::chrono::hours(1), Say, {}, milliseconds(1));
    const PluginCall inner("backend 'slow', in its init", milliseconds(-1), Say);
    ExitWhenOverdue(recorder);
  };
  EXPECT_EXIT(hang(), ::testing::ExitedWithCode(3), "^overdue: backend 'slow', in its init\n$");
}

TEST(PluginCall, EndsAProcessWhosePluginStaysInACallThatIsInVain) {
  const auto hang = [] {
    PluginCall call("backend 'deaf', making 'world'", milliseconds(-1), Say, [] { return "rank 1 cannot"; });
    for (;;) ::pause();
  };
  EXPECT_EXIT(hang(), ::testing::ExitedWithCode(PluginCall::kExitCode),
              "reported: backend 'deaf', making 'world', has not returned for 10s although it is in vain, so "
              "this process ends: rank 1 cannot\n");
}

TEST(PluginCall, EndsAProcessWhosePluginCallsExitAsAFailure) {
  const auto leave = [] {
    PluginCall call("backend 'rude', making 'world'", milliseconds(-1), Say);
    std::exit(0);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(PluginCall::kExitCode),
              "reported: backend 'rude', making 'world', called exit.., which only the program may call");
}

TEST(PluginCall, EndsAProcessWhosePluginCallsExitInAnOperation) {
  const auto leave = [] {
    { PluginCall("backend 'rude', making 'world'", milliseconds(-1), Say); }
    const std::string backend = "rude";
    const PluginReport report = Say;
    { OperationCall over(backend, report); }
    std::atexit([] { fprintf(stderr, "the program's own\n"); });
    OperationCall call(backend, report);
    std::exit(0);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(PluginCall::kExitCode),
              "the program's own\n.*reported: backend 'rude', in an operation, called exit");
}

TEST(PluginCall, LetsTheProgramsSignalHandlerCallExit) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer reports the handler, which is the program's";
#endif
  const auto leave = [] {
    { PluginCall("backend 'kind', making 'world'", milliseconds(-1), Say); }
    const std::string backend = "kind";
    const PluginReport report = Say;
    OperationCall call(backend, report);
    std::signal(SIGTERM, [](int) { std::exit(3); });
    std::raise(SIGTERM);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(3), "^$");
}

TEST(PluginCall, LeavesAProcessAloneOnceItIsOver) {
  const auto well = [] {
    {
      PluginCall outer("outer", std::chrono::hours(1), Say);
      PluginCall inner("inner", milliseconds(-1), Say, [] { return "it is in vain"; });
      const std::string backend = "inner";
      const PluginReport report = Say;
      OperationCall operation(backend, report);
    }
    std::exit(0);
  };
  EXPECT_EXIT(well(), ::testing::ExitedWithCode(0), "^$");
}

TEST(PluginCall, WatchesNothingWithoutAReport) {
  const auto leave = [] {
    PluginCall call("backend 'self', making 'world'", milliseconds(1), {});
    std::exit(0);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace dtrun::comm
