#include "thread_watch.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>

namespace dtrun::conformance {
namespace {

struct Start {
  void* (*function)(void*);
  void* argument;
};

std::atomic<bool> can_be_seen{false};
std::atomic<const void*> watched{nullptr};  // where its image begins
std::mutex mutex;
std::vector<SeenThread> seen;

const void* ImageOf(const void* address) {
  Dl_info info{};
  return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

// A std::thread is started by the C++ library, with an object of a class of its author.
bool IsOfTheCxxLibrary(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && std::strstr(info.dli_fname, "++") != nullptr;
}

bool IsOfTheWatched(const void* caller, void* (*function)(void*), void* argument) {
  const void* const image = watched;
  if (image == nullptr) return false;
  const void* const start = reinterpret_cast<const void*>(function);
  if (ImageOf(start) == image) return true;
  return argument != nullptr && IsOfTheCxxLibrary(caller) && IsOfTheCxxLibrary(start) &&
         ImageOf(*static_cast<const void* const*>(argument)) == image;
}

void Note(bool SeenThread::*what) {
  const auto id = static_cast<int>(syscall(SYS_gettid));
  const std::lock_guard lock(mutex);
  for (auto thread = seen.rbegin(); thread != seen.rend(); ++thread) {
    if (thread->id != id) continue;
    (*thread).*what = true;
    return;
  }
}

}  // namespace

void WatchThreads(const void* address) {
  const std::lock_guard lock(mutex);
  seen.clear();
  watched = ImageOf(address);
}

bool ThreadsCanBeSeen() { return can_be_seen; }

std::vector<SeenThread> SeenThreads() {
  const std::lock_guard lock(mutex);
  return seen;
}

void NoteDeclared() { Note(&SeenThread::declared); }
void NoteEnded() { Note(&SeenThread::ended); }

void* WrapThread(const void* caller, void* (*function)(void*), void* argument) {
  can_be_seen = true;
  return IsOfTheWatched(caller, function, argument) ? new Start{function, argument} : nullptr;
}

void* RunThread(void* wrapped) {
  const Start start = *static_cast<Start*>(wrapped);
  delete static_cast<Start*>(wrapped);
  {
    const std::lock_guard lock(mutex);
    seen.push_back({.id = static_cast<int>(syscall(SYS_gettid))});
  }
  void* const result = start.function(start.argument);
  Note(&SeenThread::over);
  return result;
}

}  // namespace dtrun::conformance
