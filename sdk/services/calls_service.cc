#include <memory>

#include "arguments.h"
#include "dtrun/plugin/call_queue.hpp"
#include "services.h"

namespace dtrun::services {
namespace {

constexpr std::size_t kThreadNameBytes = 15;

// Adapts a plugin's runner to the queue.
class PluginRunner final : public sdk::Runner {
 public:
  explicit PluginRunner(const dtrun_runner& table) : table_(table) {}

  void Run(sdk::Running& running) override {
    dtrun_op op = *running.op;
    if (op.timeout_ns >= 0) op.timeout_ns = running.deadline.Left(sdk::Nanoseconds(op.timeout_ns)).count();
    CheckAnswer("dtrun_runner.run", [&](dtrun_error* e) { return table_.run(table_.context, &op, e); });
  }
  void Abandon(const sdk::Running& running) override { table_.abandon(table_.context, running.op); }

 private:
  const dtrun_runner table_;
};

// The queue must end before its runner and the text that it borrows.
struct PluginCalls {
  PluginCalls(const dtrun_host* host, const dtrun_runner& table, int size, const char* thread_name)
      : runner(table), thread(thread_name), queue(sdk::Host(host), runner, thread.c_str(), size) {}

  PluginRunner runner;
  const std::string thread;
  sdk::CallQueue queue;
};

PluginCalls* ToCalls(dtrun_calls* handle) { return reinterpret_cast<PluginCalls*>(handle); }
sdk::Request* ToRequest(dtrun_call* handle) { return reinterpret_cast<sdk::Request*>(handle); }

dtrun_status OpenCalls(const dtrun_host* host, const dtrun_runner* given, std::int32_t size,
                       const char* thread, dtrun_calls** out, dtrun_error* err) {
  return sdk::Guard(err, [&] {
    Require(host, "the host");
    Require(out, "out");
    Require(thread, "the name of the thread");
    const dtrun_runner table = Read(given, "the runner");
    Require(reinterpret_cast<const void*>(table.run), "dtrun_runner.run");
    Require(reinterpret_cast<const void*>(table.abandon), "dtrun_runner.abandon");
    RequireRank(0, size, "the first rank");
    if (std::strlen(thread) > kThreadNameBytes) {
      throw sdk::Failure(DTRUN_INVALID_ARGUMENT, std::string("the thread's name '") + thread +
                                                     "' has more than 15 bytes; use a shorter one");
    }
    *out = reinterpret_cast<dtrun_calls*>(std::make_unique<PluginCalls>(host, table, size, thread).release());
    return dtrun_status{DTRUN_OK};
  });
}

dtrun_status EnqueueCall(const dtrun_host*, dtrun_calls* calls, const dtrun_op* given, dtrun_call** out,
                         dtrun_error* err) {
  return sdk::Guard(err, [&] {
    Require(calls, "the dtrun_calls");
    Require(out, "out");
    const dtrun_op op = Read(given, "the operation");
    if (!sdk::IsKnown(op.kind) || !sdk::IsCollective(op.kind)) {
      throw sdk::Failure(DTRUN_INVALID_ARGUMENT,
                         std::string(sdk::OperationName(op.kind)) + " (kind " + std::to_string(op.kind) +
                             ") is no collective; a message must not wait in this queue");
    }
    *out = reinterpret_cast<dtrun_call*>(ToCalls(calls)->queue.Enqueue(op).release());
    return dtrun_status{DTRUN_PENDING};
  });
}

dtrun_status WaitForCall(const dtrun_host*, dtrun_call* call, std::int64_t timeout_ns, dtrun_error* err) {
  return sdk::Guard(err, [&] {
    Require(call, "the dtrun_call");
    return dtrun_status{ToRequest(call)->Wait(sdk::Nanoseconds(timeout_ns)) ? DTRUN_OK : DTRUN_PENDING};
  });
}

dtrun_status TestCall(const dtrun_host* host, dtrun_call* call, dtrun_error* err) {
  return WaitForCall(host, call, 0, err);
}

void ReleaseCall(const dtrun_host*, dtrun_call* call) { delete ToRequest(call); }
void CloseCalls(const dtrun_host*, dtrun_calls* calls) { delete ToCalls(calls); }

}  // namespace

const dtrun_calls_service* Calls() {
  static constexpr dtrun_calls_service kService{sizeof(dtrun_calls_service),
                                                0,
                                                &OpenCalls,
                                                &EnqueueCall,
                                                &TestCall,
                                                &WaitForCall,
                                                &ReleaseCall,
                                                &CloseCalls};
  return &kService;
}

}  // namespace dtrun::services
