// Watches calls into a plugin. A plugin that does not return, or calls exit, must not leave a job that hangs
// or seems to succeed.
//
// Lives on the stack of the calling thread, for the duration of the call. Detects an exit on that thread, and
// on one of the plugin's own that has a function of the plugin on its stack. After `_exit` the host finds the
// mark of the call in the flight recorder.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/contract/member_mark.h"

namespace dtrun::comm {

// Receives what happened, on any thread, before the process ends.
using PluginReport = std::function<void(const Error& failure)>;

// Prints the reason, reports it to the agent, and ends the process with PluginCall::kExitCode. `plugin`: to
// blame, such as "backend 'demo'"; empty: none.
[[noreturn]] void EndProcess(const std::string& what, const PluginReport& report,
                             const std::string& plugin = {});

// An error that names the plugin, which did `what` against its ABI; also reported to the agent. `call`:
// "backend 'demo', in its init".
Error BrokeRule(const std::string& call, std::string_view what, const PluginReport& report);
// The same for an exception that came out of a plugin (rule E1). REQUIRES: in a catch block.
Error Threw(const std::string& call, const PluginReport& report);

// The same of an operation, as the member's answer.
dtrun_status OperationBrokeRule(const std::string& backend, std::string_view what, const PluginReport& report,
                                dtrun_error* cause);
dtrun_status OperationThrew(const std::string& backend, const PluginReport& report, dtrun_error* cause);

// `error` is a defect of the plugin, "backend 'demo'".
void BlameFor(Error& error, const std::string& plugin);
// If the plugin gave no text with its failure (rule E3), `error` says so and names it.
void NoteMissingText(const std::string& plugin, const dtrun_error& cause, Error& error);

// Calls a member of `backend` that answers nothing. A Threw is reported; `where`: "in its shutdown".
template <class Member>
void Guard(const std::string& backend, const char* where, const PluginReport& report, const Member& member) {
  try {
    member();
  } catch (...) {
    (void)Threw("backend '" + backend + "', " + where, report);
  }
}

// For members that no operation calls: loading, init, query_caps, comm_create, comm_destroy, shutdown. Has
// its own thread.
class PluginCall {
 public:
  // Exit code of a process that a plugin blocked or tried to end, or that does not learn of a failure:
  // EX_SOFTWARE of sysexits.h.
  static constexpr int kExitCode = 70;
  // How long beyond its timeout a member may take before the process ends, and before it counts as overdue.
  static constexpr std::chrono::seconds kBeyondTimeout{10}, kOverdueAfter{1};
  // When a member with that limit is overdue; zero: never.
  static Nanoseconds DueOf(Nanoseconds limit) {
    return std::max<Nanoseconds>(limit - kBeyondTimeout + kOverdueAfter, Nanoseconds(0));
  }

  // `call`: "backend 'demo', in init". `limit`: negative for none; a plugin that keeps its own limits returns
  // long before. Without a `report` nothing is watched. `in_vain`: polled on another thread; a non-empty text
  // says why the call has become pointless. The plugin then has only a short time to return, whatever the
  // limit. `due`: for HangWatch.
  PluginCall(std::string call, Nanoseconds limit, PluginReport report,
             std::function<std::string()> in_vain = {}, Nanoseconds due = {});
  ~PluginCall();
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

 private:
  friend void EndOfPluginsExit();
  void Watch(Nanoseconds limit);
  // Whether the member returns within the time.
  bool ReturnsWithin(Nanoseconds time);
  // This call, or that of another plugin inside it, which has not returned either.
  std::string Innermost();

  static thread_local PluginCall* current_;

  const std::string call_;
  const PluginReport report_;
  const std::function<std::string()> in_vain_;
  PluginCall* const outer_ = current_;  // a plugin may make another one's communicator
  const Nanoseconds due_;               // one without its own has that of the outer call
  const contract::InMember mark_;
  PluginCall& root_ = outer_ == nullptr ? *this : outer_->root_;
  std::mutex mutex_;
  std::condition_variable returned_;
  bool done_ = false;
  std::string inner_;  // of a root: the innermost call; empty: itself
  std::thread watch_;
};

// For members that operations call: costs nanoseconds, and leaves time limits to the operation. REQUIRES an
// earlier PluginCall with a report; both arguments outlive it.
class OperationCall {
 public:
  // `limit_ns`: after which it should be back, for HangWatch; 0: none.
  OperationCall(const std::string& backend, const PluginReport& report, std::int64_t limit_ns = 0)
      : mark_(backend, limit_ns), backend_(backend), report_(report), outer_(current_) {
    current_ = this;
  }
  ~OperationCall() { current_ = outer_; }
  OperationCall(const OperationCall&) = delete;
  OperationCall& operator=(const OperationCall&) = delete;

 private:
  friend void EndOfPluginsExit();

  // Python loads libdtrun late; this takes 8 of the bytes that the loader reserves for such libraries.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local const OperationCall* current_;

  const contract::InMember mark_;
  const std::string& backend_;
  const PluginReport& report_;
  const OperationCall* const outer_;
};

// Notes in the marks which calls are overdue, and ends the process when one has not returned long after its
// limit. Owned by the runtime.
class HangWatch {
 public:
  explicit HangWatch(PluginReport report);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

 private:
  struct Seen {
    std::uint32_t entered = 0;
    Nanoseconds since{};
  };
  void Look(Nanoseconds passed);

  const PluginReport report_;
  std::array<Seen, contract::kThreadMarks> seen_{};
  std::mutex mutex_;
  std::condition_variable ends_;
  bool end_ = false;
  std::thread watch_;
};

}  // namespace dtrun::comm
