#include "core/comm/plugin_call.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "core/base/thread.h"

namespace dtrun::comm {
namespace {

constexpr char kNext[] = "report it to the plugin's author, or choose another backend";

}  // namespace

thread_local PluginCall* PluginCall::current_ = nullptr;

PluginCall::PluginCall(std::string call, Nanoseconds limit, Report report)
    : call_(std::move(call)), report_(std::move(report)) {
  if (!report_) return;
  static const int watching = std::atexit(&PluginCall::OnExit);
  if (watching == 0) current_ = this;
  if (limit.count() < 0) return;
  watch_ = StartThread("dtrun-watch", [this, limit] { Watch(limit); });
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
                  FormatDuration(limit), kNext));
}

// Runs on the thread that has called exit.
void PluginCall::OnExit() {
  if (current_ != nullptr)
    current_->End(fmt::format("{}, called exit, which is the program's to call; {}", current_->call_, kNext));
}

void PluginCall::End(const std::string& what) const {
  const std::string line = fmt::format("dtrun: {}\n", what);
  // The report is the better way; this one is for the log.
  const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  (void)written;
  report_(what);
  ::_exit(kExitCode);
}

}  // namespace dtrun::comm
