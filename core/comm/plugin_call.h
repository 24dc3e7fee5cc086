// A call into a plugin that makes something, init or comm_create, watched from outside: a plugin that does
// not return, or calls exit, must not leave a job that hangs or one that succeeded.
//
// On the stack of the thread that calls the plugin, for as long as the call takes. Has a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/units.h"

namespace dtrun::comm {

class PluginCall {
 public:
  // Gets the sentence that says what happened, on any thread, before the process ends.
  using Report = std::function<void(std::string_view what)>;

  // What a process exits with that a plugin has kept or tried to end: EX_SOFTWARE of sysexits.h.
  static constexpr int kExitCode = 70;

  // `call`: "backend 'demo', in init". `limit`: negative for none; a plugin that keeps to its own limits is
  // back long before. Without a `report` nothing is watched.
  PluginCall(std::string call, Nanoseconds limit, Report report);
  ~PluginCall();
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

 private:
  static void OnExit();
  [[noreturn]] void End(const std::string& what) const;
  void Watch(Nanoseconds limit);

  static thread_local PluginCall* current_;

  const std::string call_;
  const Report report_;
  PluginCall* const outer_ = current_;  // a plugin that makes another one's communicator
  std::mutex mutex_;
  std::condition_variable returned_;
  bool done_ = false;
  std::thread watch_;
};

}  // namespace dtrun::comm
