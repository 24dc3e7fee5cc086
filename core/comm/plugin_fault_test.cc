#include "core/comm/plugin_fault.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace dtrun::comm {
namespace {

char* volatile page = nullptr;

void Crash() {
  page = static_cast<char*>(::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  *page = 1;
}

void Handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

class PluginFault : public ::testing::Test {
#ifdef __SANITIZE_ADDRESS__
  void SetUp() override { GTEST_SKIP() << "the sanitizer handles these signals"; }
#endif
};

TEST_F(PluginFault, LeavesTheEndOfAProcessAsItIs) {
  const auto end = [](auto fault) {
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE}) Handle(signal, SIG_DFL);
    WatchForFaults();
    WatchForFaults();
    fault();
    ::_exit(0);
  };
  EXPECT_EXIT(end(Crash), ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(end(std::abort), ::testing::KilledBySignal(SIGABRT), "");
  EXPECT_EXIT(end([] { std::raise(SIGFPE); }), ::testing::KilledBySignal(SIGFPE), "");
}

TEST_F(PluginFault, RunsTheHandlerThatWasThereBefore) {
  const auto play = [] {
    Handle(SIGSEGV, [](int) { ::_exit(3); });
    WatchForFaults();
    Crash();
  };
  EXPECT_EXIT(play(), ::testing::ExitedWithCode(3), "");
}

TEST_F(PluginFault, LetsAProgramMendItsFaults) {
  const auto play = [] {
    Handle(SIGSEGV, [](int) { ::mprotect(page, 4096, PROT_READ | PROT_WRITE); });
    WatchForFaults();
    Crash();
    Crash();
    ::_exit(*page == 1 ? 4 : 5);
  };
  EXPECT_EXIT(play(), ::testing::ExitedWithCode(4), "");
}

TEST_F(PluginFault, LeavesASignalThatIsIgnored) {
  const auto play = [] {
    Handle(SIGFPE, SIG_IGN);
    WatchForFaults();
    std::raise(SIGFPE);
    std::raise(SIGFPE);
    ::_exit(6);
  };
  EXPECT_EXIT(play(), ::testing::ExitedWithCode(6), "");
}

}  // namespace
}  // namespace dtrun::comm
