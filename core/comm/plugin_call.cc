#include "core/comm/plugin_call.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error_id.h"
#include "core/base/thread.h"

namespace dtrun::comm {
namespace {

constexpr char kNext[] = "report it to the plugin's author, or choose another backend";

// Time until the first poll whether a call is in vain; later polls become rarer.
constexpr std::chrono::seconds kFirstQuestion{1};
constexpr std::chrono::seconds kLastQuestion{60};
// Time for a plugin to notice by itself that its call is in vain.
constexpr std::chrono::seconds kNotices{10};

// Whether a signal handler is running on this thread: its exit is the program's, wherever the signal arrived.
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

// NAME of a path that ends with libdtrun_backend_NAME.so (rule V1); empty for any other.
std::string_view BackendOf(std::string_view path) {
  constexpr std::string_view kBegin = "libdtrun_backend_", kEnd = ".so";
  path.remove_prefix(path.rfind('/') + 1);
  if (!path.starts_with(kBegin) || !path.ends_with(kEnd)) return {};
  return path.substr(kBegin.size(), path.size() - kBegin.size() - kEnd.size());
}

// The backend plugin that has a function on this thread's stack; empty: none.
std::string BackendOnStack() {
  std::string name;
  const auto look = [](_Unwind_Context* frame, void* found) {
    Dl_info info;
    if (::dladdr(reinterpret_cast<void*>(_Unwind_GetIP(frame)), &info) == 0 || info.dli_fname == nullptr)
      return _URC_NO_REASON;
    *static_cast<std::string*>(found) = BackendOf(info.dli_fname);
    return static_cast<std::string*>(found)->empty() ? _URC_NO_REASON : _URC_END_OF_STACK;
  };
  (void)_Unwind_Backtrace(look, &name);
  return name;
}

}  // namespace

void EndProcess(const std::string& what, const PluginReport& report) {
  const std::string line = fmt::format("dtrun: {}\n", what);
  // Written for the log, besides the report.
  const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  (void)written;
  if (report) {
    report(Error{DTRUN_INTERNAL, what, -1, ErrorId::kPluginStuck});
    contract::MemberMarks::Retire();
  }
  ::_exit(PluginCall::kExitCode);
}

namespace {

std::string CalledExit(std::string_view call) {
  return fmt::format("{}, called exit(), which only the program may call; {}", call, kNext);
}

}  // namespace

thread_local PluginCall* PluginCall::current_ = nullptr;
constinit thread_local const OperationCall* OperationCall::current_ = nullptr;

// Runs on the thread that called exit.
void EndOfPluginsExit() {
  if (HandlesSignal()) return contract::MemberMarks::Retire();
  if (const PluginCall* call = PluginCall::current_) EndProcess(CalledExit(call->call_), call->report_);
  if (const OperationCall* call = OperationCall::current_)
    EndProcess(CalledExit(fmt::format("backend '{}', in an operation", call->backend_)), call->report_);
  contract::MemberMarks::Retire();
  if (const std::string backend = BackendOnStack(); !backend.empty()) {
    const std::string call = fmt::format("backend '{}', on a thread of its own", backend);
    EndProcess(CalledExit(call), {});
  }
}

PluginCall::PluginCall(std::string call, Nanoseconds limit, PluginReport report,
                       std::function<std::string()> in_vain)
    : call_(std::move(call)), report_(std::move(report)), in_vain_(std::move(in_vain)) {
  if (!report_) return;
  static const int watching = std::atexit(&EndOfPluginsExit);
  if (watching == 0) current_ = this;
  if (limit.count() < 0 && !in_vain_) return;
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

bool PluginCall::ReturnsWithin(Nanoseconds time) {
  std::unique_lock lock(mutex_);
  return returned_.wait_for(lock, time, [this] { return done_; });
}

void PluginCall::Watch(Nanoseconds limit) {
  Nanoseconds left = limit.count() < 0 ? Nanoseconds::max() : limit;
  for (Nanoseconds pause = kFirstQuestion; in_vain_ && left > pause;
       pause = std::min<Nanoseconds>(2 * pause, kLastQuestion)) {
    if (ReturnsWithin(pause)) return;
    left -= pause;
    const std::string why = in_vain_();
    if (why.empty()) continue;
    if (ReturnsWithin(kNotices)) return;
    EndProcess(fmt::format("{}, has not returned for {} although it is in vain, so this process ends: {}",
                           call_, FormatDuration(kNotices), why),
               report_);
  }
  if (ReturnsWithin(left)) return;
  EndProcess(fmt::format("{}, has not returned for {}, far beyond backend.timeout, so this process ends; {}",
                         call_, FormatDuration(limit), kNext),
             report_);
}

}  // namespace dtrun::comm
