#include "own_process.h"

#include <unistd.h>

#include <atomic>

namespace dtrun::conformance {
namespace {

std::atomic<pid_t> owner{0};

}  // namespace

void ClaimProcess() { owner = getpid(); }

void EndIfCopied() {
  const pid_t claimed = owner;
  if (claimed != 0 && claimed != getpid()) _exit(1);
}

}  // namespace dtrun::conformance
