// Calls into a plugin, watched from outside: a plugin that does not return, or calls exit, must not leave a
// job that hangs or one that succeeded.
//
// On the stack of the thread that calls the plugin, for as long as the call takes. exit is seen on that
// thread, and on one of the plugin's own that has a function of the plugin on its stack. After `_exit` the
// host sees the mark of the call in the flight recorder.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/units.h"
#include "core/contract/member_mark.h"

namespace dtrun::comm {

// Gets the sentence that says what happened, on any thread, before the process ends. `peer`: -1.
using PluginReport = std::function<void(int peer, std::string_view what)>;

// Says why and to the agent, and ends the process with PluginCall::kExitCode.
[[noreturn]] void EndProcess(const std::string& what, const PluginReport& report);

// Of a member that no operation calls: loading, init, query_caps, comm_create, comm_destroy, shutdown. Has a
// thread of its own.
class PluginCall {
 public:
  // What a process exits with that a plugin has kept or tried to end, or that does not come to hear of a
  // failure: EX_SOFTWARE of sysexits.h.
  static constexpr int kExitCode = 70;

  // `call`: "backend 'demo', in init". `limit`: negative for none; a plugin that keeps to its own limits is
  // back long before. Without a `report` nothing is watched. `in_vain`: asked now and then whether the call
  // has no point any more, on another thread; a plugin that has not returned a while after that was said, in
  // words, is not waited for until the limit.
  PluginCall(std::string call, Nanoseconds limit, PluginReport report,
             std::function<std::string()> in_vain = {});
  ~PluginCall();
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

 private:
  friend void EndOfPluginsExit();
  void Watch(Nanoseconds limit);
  // Whether the member has returned within the time.
  bool ReturnsWithin(Nanoseconds time);

  static thread_local PluginCall* current_;

  const std::string call_;
  const PluginReport report_;
  const std::function<std::string()> in_vain_;
  const contract::InMember mark_ = contract::InMember::Of(call_);
  PluginCall* const outer_ = current_;  // a plugin that makes another one's communicator
  std::mutex mutex_;
  std::condition_variable returned_;
  bool done_ = false;
  std::thread watch_;
};

// Of a member that an operation calls: takes nanoseconds, and leaves time limits to the operation.
// REQUIRES: a PluginCall with a report came before; both arguments outlive it
class OperationCall {
 public:
  OperationCall(const std::string& backend, const PluginReport& report)
      : mark_(backend), backend_(backend), report_(report), outer_(current_) {
    current_ = this;
  }
  ~OperationCall() { current_ = outer_; }
  OperationCall(const OperationCall&) = delete;
  OperationCall& operator=(const OperationCall&) = delete;

 private:
  friend void EndOfPluginsExit();

  // libdtrun is loaded late by Python; this takes 8 of the bytes that the loader keeps for such libraries.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local const OperationCall* current_;

  const contract::InMember mark_;
  const std::string& backend_;
  const PluginReport& report_;
  const OperationCall* const outer_;
};

}  // namespace dtrun::comm
