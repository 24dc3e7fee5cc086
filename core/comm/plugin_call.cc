#include "core/comm/plugin_call.h"

#include <fmt/format.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdlib>
#include <system_error>
#include <utility>

#include "core/base/thread.h"

namespace dtrun::comm {
namespace {

constexpr char kNext[] = "report it to the plugin's author, or choose another backend";

// Whether a signal's handler is under way on this thread: its exit is the program's, wherever the signal
// came.
bool HandlesSignal() {
  bool handles = false;
  const auto look = [](_Unwind_Context* frame, void* found) {
    int interrupted = 0;
    (void)_Unwind_GetIPInfo(frame, &interrupted);
    if (interrupted != 0) *static_cast<bool*>(found) = true;
    return _URC_NO_REASON;
  };
  (void)_Unwind_Backtrace(look, &handles);
  return handles;
}

[[noreturn]] void End(const std::string& what, const PluginReport& report) {
  const std::string line = fmt::format("dtrun: {}\n", what);
  // The report is the better way; this one is for the log.
  const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  (void)written;
  if (report) report(-1, what);
  ::_exit(PluginCall::kExitCode);
}

std::string CalledExit(std::string_view call) {
  return fmt::format("{}, called exit, which is the program's to call; {}", call, kNext);
}

}  // namespace

thread_local PluginCall* PluginCall::current_ = nullptr;
constinit thread_local const OperationCall* OperationCall::current_ = nullptr;

// Runs on the thread that has called exit.
void EndOfPluginsExit() {
  if (HandlesSignal()) return;
  if (const PluginCall* call = PluginCall::current_) End(CalledExit(call->call_), call->report_);
  if (const OperationCall* call = OperationCall::current_)
    End(CalledExit(fmt::format("backend '{}', in an operation", call->backend_)), call->report_);
}

PluginCall::PluginCall(std::string call, Nanoseconds limit, PluginReport report)
    : call_(std::move(call)), report_(std::move(report)) {
  if (!report_) return;
  static const int watching = std::atexit(&EndOfPluginsExit);
  if (watching == 0) current_ = this;
  if (limit.count() < 0) return;
  try {
    watch_ = StartThread("dtrun-watch", [this, limit] { Watch(limit); });
  } catch (const std::system_error&) {  // at the limit of threads: unwatched is better than not called
  }
}

PluginCall::~PluginCall() {
  current_ = outer_;
  if (!watch_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  returned_.notify_one();
  watch_.join();
}

void PluginCall::Watch(Nanoseconds limit) {
  std::unique_lock lock(mutex_);
  if (returned_.wait_for(lock, limit, [this] { return done_; })) return;
  End(fmt::format("{}, has not returned for {}, far beyond backend.timeout, so this process ends; {}", call_,
                  FormatDuration(limit), kNext),
      report_);
}

}  // namespace dtrun::comm
