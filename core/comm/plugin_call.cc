#include "core/comm/plugin_call.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error_id.h"
#include "core/base/text.h"
#include "core/base/thread.h"
#include "core/plugin/search_path.h"

namespace dtrun::comm {
namespace {

constexpr char kNext[] = "report it to the plugin's author, or choose another backend";

// Time until the first poll whether a call is in vain; later polls become rarer.
constexpr std::chrono::seconds kFirstQuestion{1};
constexpr std::chrono::seconds kLastQuestion{60};
// Time for a plugin to notice by itself that its call is in vain.
constexpr std::chrono::seconds kNotices{10};
// How long beyond its limit the call of an operation may take, and how often it is looked at.
constexpr std::chrono::seconds kBeyondLimit{10};
constexpr std::chrono::seconds kBetweenLooks{1};

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

// The backend plugin that has a function on this thread's stack; empty: none.
std::string BackendOnStack() {
  std::string name;
  const auto look = [](_Unwind_Context* frame, void* found) {
    Dl_info info;
    if (::dladdr(reinterpret_cast<void*>(_Unwind_GetIP(frame)), &info) == 0 || info.dli_fname == nullptr)
      return _URC_NO_REASON;
    const std::string_view path = info.dli_fname;
    const auto file = plugin::ParseFileName(path.substr(path.rfind('/') + 1));
    if (!file || file->first != plugin::Kind::kBackend) return _URC_NO_REASON;
    *static_cast<std::string*>(found) = file->second;
    return _URC_END_OF_STACK;
  };
  (void)_Unwind_Backtrace(look, &name);
  return name;
}

// Of a plugin that is in no call of dtrun's on this thread.
const char* OutsideCalls() {
  return ::gettid() == ::getpid() ? ", outside its calls" : ", on a thread of its own";
}

}  // namespace

void EndProcess(const std::string& what, const PluginReport& report, const std::string& plugin) {
  const std::string line = fmt::format("dtrun: {}\n", what);
  // Written for the log, besides the report.
  const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  (void)written;
  if (report) {
    Error error{DTRUN_INTERNAL, what, -1};
    if (!plugin.empty()) error.id = ErrorId::kPluginStuck, error.args["plugin"] = plugin;
    report(error);
    contract::MemberMarks::Retire();
  } else if (!plugin.empty()) {
    contract::MemberMarks::Fault((plugin + OutsideCalls()).c_str());
  }
  ::_exit(PluginCall::kExitCode);
}

namespace {

// "backend 'demo'" of "backend 'demo', in its init"
std::string PluginIn(const std::string& call) { return call.substr(0, call.find(',')); }

std::string InAnOperation(const std::string& backend) {
  return fmt::format("backend '{}', in an operation", backend);
}

std::string CaughtText() {
  try {
    throw;
  } catch (const std::exception& thrown) {
    return Printable(thrown.what());
  } catch (...) {
    return "no std::exception";
  }
}

[[noreturn]] void EndAfterExit(const std::string& call, const PluginReport& report) {
  EndProcess(fmt::format("{}, called exit(), which only the program may call; {}", call, kNext), report,
             PluginIn(call));
}

}  // namespace

void BlameFor(Error& error, const std::string& plugin) {
  error.id = ErrorId::kPluginFault;
  error.args["plugin"] = plugin;
}

Error BrokeRule(const std::string& call, std::string_view what, const PluginReport& report) {
  Error error{DTRUN_INTERNAL, fmt::format("{}, {}; {}", call, what, kNext), -1};
  BlameFor(error, PluginIn(call));
  if (report) report(error);
  return error;
}

Error Threw(const std::string& call, const PluginReport& report) {
  try {
    throw;
  } catch (const abi::__forced_unwind&) {  // may not be stopped here, and has no way through the caller
    EndProcess(
        fmt::format("{}, ended the program's thread that had called it (pthread_exit); {}", call, kNext),
        report, PluginIn(call));
  } catch (...) {
  }
  return BrokeRule(call, fmt::format("threw an exception, which no plugin may: {}", CaughtText()), report);
}

dtrun_status OperationBrokeRule(const std::string& backend, std::string_view what, const PluginReport& report,
                                dtrun_error* cause) {
  return BrokeRule(InAnOperation(backend), what, report).CopyTo(cause);
}

dtrun_status OperationThrew(const std::string& backend, const PluginReport& report, dtrun_error* cause) {
  return Threw(InAnOperation(backend), report).CopyTo(cause);
}

void NoteMissingText(const std::string& plugin, const dtrun_error& cause, Error& error) {
  if (cause.message[0] != '\0' || error.code == DTRUN_OUT_OF_MEMORY) return;
  error.text += fmt::format("; {} gave no text with it; report it to the plugin's author", plugin);
  BlameFor(error, plugin);
}

thread_local PluginCall* PluginCall::current_ = nullptr;
constinit thread_local const OperationCall* OperationCall::current_ = nullptr;

// Runs on the thread that called exit.
void EndOfPluginsExit() {
  if (HandlesSignal()) return contract::MemberMarks::Retire();
  if (const PluginCall* call = PluginCall::current_) EndAfterExit(call->call_, call->report_);
  const std::string backend = BackendOnStack();
  if (const OperationCall* call = OperationCall::current_)
    EndAfterExit(InAnOperation(backend.empty() ? call->backend_ : backend), call->report_);
  contract::MemberMarks::Retire();
  if (!backend.empty()) EndAfterExit(fmt::format("backend '{}'{}", backend, OutsideCalls()), {});
}

PluginCall::PluginCall(std::string call, Nanoseconds limit, PluginReport report,
                       std::function<std::string()> in_vain, Nanoseconds due)
    : call_(std::move(call)),
      report_(std::move(report)),
      in_vain_(std::move(in_vain)),
      due_(due.count() == 0 && outer_ != nullptr ? outer_->due_ : due),
      mark_(contract::InMember::Of(call_, due_.count())) {
  if (!report_) return;
  if (outer_ != nullptr) {
    const std::lock_guard lock(root_.mutex_);
    root_.inner_ = call_;
  }
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
  if (outer_ != nullptr) {
    (void)contract::InMember::Of(outer_->call_, outer_->due_.count());  // the mark names it again
    const std::lock_guard lock(root_.mutex_);
    root_.inner_ = outer_->call_;
  }
  if (!watch_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  returned_.notify_one();
  watch_.join();
}

HangWatch::HangWatch(PluginReport report) : report_(std::move(report)) {
  try {
    watch_ = StartThread("dtrun-hangs", [this] {
      auto last = std::chrono::steady_clock::now();
      for (std::unique_lock lock(mutex_); !ends_.wait_for(lock, kBetweenLooks, [this] { return end_; });) {
        const auto now = std::chrono::steady_clock::now();
        // A process that was stopped has not waited meanwhile.
        Look(std::min<Nanoseconds>(now - std::exchange(last, now), 2 * kBetweenLooks));
      }
    });
  } catch (const std::system_error&) {  // at the limit of threads, as PluginCall
  }
}

HangWatch::~HangWatch() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ends_.notify_one();
  if (watch_.joinable()) watch_.join();
}

void HangWatch::Look(Nanoseconds passed) {
  contract::MemberMark* const marks = contract::MemberMarks::Mine();
  for (std::size_t i = 0; marks != nullptr && i < seen_.size(); ++i) {
    contract::MemberMark& mark = marks[i];
    const std::uint32_t entered = mark.entered.load(std::memory_order_relaxed);
    const Nanoseconds limit(mark.limit.load(std::memory_order_relaxed));
    const bool inside = mark.depth.load(std::memory_order_relaxed) > 0 && limit.count() > 0;
    const bool same = inside && seen_[i].entered == entered;
    seen_[i] = {entered, same ? seen_[i].since + passed : Nanoseconds(0)};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - seen_[i].since).count();
    mark.left_ms.store(static_cast<std::uint16_t>(std::clamp<std::int64_t>(left, 0, UINT16_MAX)),
                       std::memory_order_relaxed);
    mark.watched.store(entered, std::memory_order_release);
    if (seen_[i].since < kBeyondLimit || seen_[i].since - kBeyondLimit < limit) continue;
    const std::string call(mark.text, ::strnlen(mark.text, sizeof mark.text));
    EndProcess(
        fmt::format(
            "{}, has not returned for {}, far beyond the operation's timeout, so this process ends; {}", call,
            FormatDuration(seen_[i].since / kBetweenLooks * kBetweenLooks), kNext),
        report_, PluginIn(call));
  }
}

bool PluginCall::ReturnsWithin(Nanoseconds time) {
  std::unique_lock lock(mutex_);
  return returned_.wait_for(lock, time, [this] { return done_; });
}

std::string PluginCall::Innermost() {
  const std::lock_guard lock(mutex_);
  return inner_.empty() ? call_ : inner_;
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
                           Innermost(), FormatDuration(kNotices), why),
               report_, PluginIn(Innermost()));
  }
  if (ReturnsWithin(left)) return;
  EndProcess(fmt::format("{}, has not returned for {}, far beyond backend.timeout, so this process ends; {}",
                         Innermost(), FormatDuration(limit), kNext),
             report_, PluginIn(Innermost()));
}

}  // namespace dtrun::comm
