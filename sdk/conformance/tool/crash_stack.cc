#include "crash_stack.h"

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <initializer_list>

namespace dtrun::conformance::tool {
namespace {

constexpr int kMostFrames = 16;
constexpr int kOwnFrames = 2;  // the handler's, and that of the kernel's return from it

void Print(int number) {
  constexpr char kHeading[] = "it crashed here, innermost first:\n";
  void* frames[kMostFrames];
  const int count = backtrace(frames, kMostFrames);
  if (write(STDERR_FILENO, kHeading, sizeof kHeading - 1) > 0 && count > kOwnFrames)
    backtrace_symbols_fd(frames + kOwnFrames, count - kOwnFrames, STDERR_FILENO);
  raise(number);  // by SA_RESETHAND it kills
}

}  // namespace

void PrintStackOfCrash() {
  void* first[1];
  static_cast<void>(backtrace(first, 1));  // loads the unwinder, which a handler must not
  static unsigned char stack[64 << 10];
  stack_t own{};
  own.ss_sp = stack;
  own.ss_size = sizeof stack;
  sigaltstack(&own, nullptr);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction action {};
    action.sa_handler = Print;
    action.sa_flags = SA_RESETHAND | SA_ONSTACK | SA_NODEFER;
    sigaction(number, &action, nullptr);
  }
}

}  // namespace dtrun::conformance::tool
