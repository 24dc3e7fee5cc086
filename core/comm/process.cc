#include "core/comm/process.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

namespace dtrun::comm {
namespace {

// Never destroyed: a program that ends without dtrun_finalize must not run our
// destructors while other threads still communicate.
struct Process {
  std::mutex mutex;  // of init and finalize
  int count = 0;
  std::atomic<Runtime*> runtime = nullptr;
  std::atomic<bool> forked = false;
};

Process& The() {
  static auto* const process = new Process;
  return *process;
}

void AfterForkInChild() {
  if (The().runtime.load() != nullptr) The().forked = true;
}

}  // namespace

Status Init() {
  Process& process = The();
  if (process.forked) return ForkError();
  const std::lock_guard lock(process.mutex);
  if (process.count > 0) {
    ++process.count;
    return {};
  }
  static const int watching = ::pthread_atfork(nullptr, nullptr, AfterForkInChild);
  if (watching != 0) return Error::System("watch for forks", watching);

  Result<Environment> environment = ReadEnvironment([](const char* name) { return std::getenv(name); });
  if (!environment) return std::move(environment).error();
  Result<std::unique_ptr<Runtime>> runtime = Runtime::Join(*std::move(environment));
  if (!runtime) return std::move(runtime).error();
  process.runtime = std::move(runtime).value().release();
  process.count = 1;
  return {};
}

void Finalize() {
  Process& process = The();
  if (process.forked) return;
  const std::lock_guard lock(process.mutex);
  if (process.count == 0 || --process.count > 0) return;
  delete process.runtime.exchange(nullptr);
}

Runtime* Current() { return The().runtime.load(std::memory_order_acquire); }

bool Forked() { return The().forked.load(std::memory_order_relaxed); }

Error ForkError() {
  return Error{DTRUN_FAILED_PRECONDITION,
               "this process was forked from a rank after init, and a forked child cannot communicate; start "
               "workers before init, or with the spawn or forkserver method"};
}

}  // namespace dtrun::comm
