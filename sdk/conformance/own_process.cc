#include "own_process.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace dtrun::conformance {
namespace {

std::atomic<pid_t> owner{0};
std::atomic<int>* ended = nullptr;  // in memory that copies share

bool IsCopy() {
  const pid_t claimed = owner;
  return claimed != 0 && claimed != getpid();
}

void CountExit() { CountIfCopied(0); }

}  // namespace

void ClaimProcess() {
  if (ended == nullptr) {
    void* const memory =
        mmap(nullptr, sizeof *ended, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) ended = new (memory) std::atomic<int>(0);
    std::atexit(&CountExit);
  }
  owner = getpid();
}

void EndIfCopied() {
  if (IsCopy()) _exit(1);
}

void CountIfCopied(int code) {
  if (ended != nullptr && code != 126 && code != 127 && IsCopy()) ++*ended;
}

int CopiesThatEnded() { return ended == nullptr ? 0 : ended->load(); }

}  // namespace dtrun::conformance
