// dtrun: launches the processes of a training program.
#include <sys/resource.h>
#include <unistd.h>

#include <new>

#include "core/base/error.h"
#include "core/base/standard_output.h"

namespace dtrun::cli {
int Main(int argc, char** argv);  // verbs.cc
}

int main(int argc, char** argv) {
  rlimit stack{};
  constexpr rlim_t kLeast = rlim_t{192} << 10;
  if (::getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < kLeast) {
    constexpr char kText[] = "dtrun: the stack may have less than 192 KiB (`ulimit -s`); raise that limit\n";
    const ssize_t written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
    static_cast<void>(written);
    return dtrun::kUserError;
  }
  dtrun::EndWhenExhausted(dtrun::kUserError);
  try {
    return dtrun::cli::Main(argc, argv);
  } catch (const std::bad_alloc& thrown) {
    dtrun::PrintMessage("dtrun: {}\n", dtrun::Exhausted(thrown));
    return dtrun::kUserError;
  }
}
