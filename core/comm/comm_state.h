// What the parts of a communicator share: how it was made, its open routes, the record of its calls, and its
// first failure.
//
// Remembers the first failure, reports which operation failed, and aborts the routes. Owned by dtrun_comm.
// Any thread may call; the destructor must run alone.
#pragma once

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/number.h"
#include "core/base/result.h"
#include "core/comm/device_watch.h"
#include "core/comm/devices.h"
#include "core/comm/operation.h"
#include "core/comm/plugin_call.h"
#include "core/comm/route.h"
#include "core/comm/trace_writer.h"
#include "core/contract/messages.h"
#include "core/contract/recorder.h"
#include "dtrun/plugin/op.hpp"

namespace dtrun::comm {

// The steady clock, in nanoseconds.
inline std::int64_t Now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// How to create a communicator, and where it reports events.
struct Making {
  dtrun_backend backend{};             // full table
  dtrun_instance* instance = nullptr;  // outlives the communicator
  std::string backend_name;
  Extensions extensions;
  std::string name;  // "world"
  int rank = 0;
  int size = 1;
  int host_count = 1;
  int node_rank = 0;                       // the host of this rank
  std::vector<int> hosts;                  // of each rank
  std::vector<int> world_ranks;            // of each rank; empty: these are the world's
  dtrun_backend_comm* parent = nullptr;    // of the communicator that this one is made from
  std::vector<std::int32_t> parent_ranks;  // of each rank, its rank there
  std::string interface_name;              // this host's, to reach the others; empty: not chosen
  std::string address;
  int local_processors = 0;  // available to this host's ranks together
  std::uint64_t generation = 0;
  dtrun_kv* kv = nullptr;      // outlives the communicator
  Devices* devices = nullptr;  // outlives it, as does device_kv; null: host memory only
  dtrun_kv* device_kv = nullptr;
  dtrun_kv* making_kv = nullptr;  // where ranks report the outcome (MadeByAll); null: not reported
  Nanoseconds timeout{-1};        // of creation and of every operation; negative: no limit
  // How long beyond an operation's timeout a backend may take to end it by itself.
  Nanoseconds patience = std::chrono::seconds(1);
  contract::Recorder* recorder = nullptr;  // outlives the communicator; null: calls are not recorded
  TraceWriter* trace = nullptr;            // outlives the communicator; null: calls are not traced
  // Reports the first failure caused by a peer or a timeout. If set, comm_create is watched (plugin_call.h).
  PluginReport report;
  // The same for communicators made from this one; all ranks are those of the world. Null: not reported.
  std::function<void(const Error& failure, const std::vector<int>& members)> report_of_part;
  // Reports an abort on purpose.
  std::function<void(std::string_view reason)> aborted;
  // Writes a line to the log.
  std::function<void(const std::string& what)> warn;
  // An operation on a stream failed, and the program makes no call that could report it. Null: no action.
  std::function<void(const std::string& what)> unheard;
  // An operation will not end and the backend cannot abort it: the communicator must never be ended.
  std::function<void()> stuck;

  // The time by which every member must have returned. Layers connect the ranks of a host first and then the
  // hosts, each within the timeout. Negative: no limit.
  Nanoseconds Limit() const {
    return timeout.count() < 0 ? timeout : 2 * timeout + PluginCall::kBeyondTimeout;
  }
  // The limit of a member that works on this rank alone, such as mem_alloc, for OperationCall. 0: none.
  std::int64_t MemberLimit() const { return timeout.count() < 0 ? 0 : (timeout + patience).count(); }
  // When comm_create is overdue, of a plugin or of layers; zero: never.
  Nanoseconds Due(bool plugin) const {
    return plugin ? PluginCall::DueOf(timeout + PluginCall::kBeyondTimeout) : PluginCall::DueOf(Limit());
  }
};

// What a plugin answers to a call for this communicator. A peer that is none of its ranks is unknown.
Error Answered(const Making& making, dtrun_status status, const dtrun_error& cause, std::string_view context);

class CommState {
 public:
  // Its host route has a carrier, and no communicator yet.
  CommState(Making made, DeviceWatch::Hooks hooks);
  // Ends the recording and destroys the communicators of the routes.
  ~CommState();
  CommState(const CommState&) = delete;
  CommState& operator=(const CommState&) = delete;

  const Making making;
  Route host;
  DeviceWatch watch;  // of operations on devices
  std::mutex order;   // guards sequence, and the order of calls of the routes and of the record
  std::uint64_t sequence = 0;
  std::atomic<bool> stuck = false;  // an operation will never end

  // Watches the caller's call of such a member.
  OperationCall Enter(const Route& route) const {
    return {route.carrier.name, making.report, making.MemberLimit()};
  }

  // What a member answers to an operation; an exception out of it is a failure that names the plugin.
  template <class Member>
  dtrun_status Answer(const Route& route, dtrun_error* cause, const Member& member) const {
    try {
      return member();
    } catch (...) {
      return OperationThrew(route.carrier.name, making.report, cause);
    }
  }

  // Calls such a member outside of operations. `what`: of its failure, in fmt's form.
  template <class Member, class... Args>
  Status Call(const Route& route, const Member& member, fmt::format_string<Args...> what,
              Args&&... args) const {
    PluginError cause;
    const OperationCall call = Enter(route);
    const dtrun_status status = Answer(route, &cause, [&] { return member(&cause); });
    if (status == DTRUN_OK) return {};
    return Answered(making, status, cause, fmt::format(what, std::forward<Args>(args)...));
  }

  // The device's route, once it is open.
  Route* device() const { return device_.load(std::memory_order_acquire); }
  void SetDevice(std::unique_ptr<Route> route);

  // ---- the record ----

  // Opens this communicator's ring; from now on a differing call on another rank ends it.
  void StartRecording();
  // Ends the recording. Idempotent.
  void StopRecording();
  // Publishes the start and end of a collective, and of a message. Begin and NoteMessage REQUIRE order.
  void Begin(std::uint64_t number, const sdk::Signature& signature) {
    if (ring_ != nullptr) contract::Begin(*ring_, number, signature);
  }
  void End(std::uint64_t number) {
    if (ring_ != nullptr) contract::End(*ring_, number);
  }
  void NoteEnd(const dtrun_op& op) {
    if (sdk::IsCollective(op.kind)) End(op.sequence);
  }
  // A message that NoteMessage began has ended, or its handle was released.
  void NoteMessageEnd(const dtrun_op& op);
  // The rank was told that a call of it is not done yet.
  void NoteAsked() {
    if (ring_ != nullptr) contract::NoteAsked(*ring_);
  }
  std::optional<contract::MessageLog> NoteMessage(const Route& route, const dtrun_op& op);
  void TakeBack(const contract::MessageLog& before) { contract::TakeBack(*ring_, before); }
  bool records() const { return ring_ != nullptr; }
  // Publishes a call that is no operation, with the next number; returns that. `device`: name of its device.
  std::uint64_t Announce(const sdk::Signature& signature, const std::string& device);

  // ---- the trace ----

  bool traces() const { return making.trace != nullptr; }
  // Notes a call that ended at `end`. REQUIRES traces().
  void Trace(const dtrun_op& op, std::int64_t began, std::int64_t given, std::int64_t end,
             std::uint32_t thread, std::uint16_t flags) const;
  // Notes that the calling thread waited for `op`. REQUIRES traces().
  void TraceWait(const dtrun_op& op, std::int64_t began, std::int64_t end) const;

  // ---- the first failure ----

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // The first failure, if there is one.
  Status Usable();
  dtrun_status FirstFailure(dtrun_error* err);
  // Remembers the failure of `op` if it is the first, and returns the first. If the ranks' calls differ, that
  // is the cause, whatever the backend reports. A refusal is returned and not remembered.
  dtrun_status Fail(const dtrun_op& op, dtrun_status status, const dtrun_error& cause, dtrun_error* err);
  // Remembers it and reports the peer to blame to the agent.
  void Record(const Error& error);
  // True if this failure is the first.
  bool Remember(const Error& error);
  // Aborts every route that can be aborted.
  void Abort(std::string_view reason);
  // After a failure that the watch found: reports it if no call of the program has.
  void TellUnheard();
  // The open routes; the second may be null.
  std::array<const Route*, 2> Routes() const { return {&host, device()}; }

 private:
  // Adds what core knows about the failure of `op` to what the backend has said: id, arguments, the ranks,
  // and calls that the other ranks are in or have not made.
  void AddFacts(const dtrun_op& op, Error& error) const;

  std::unique_ptr<Route> device_route_;
  std::atomic<Route*> device_ = nullptr;  // device_route_, once it is open
  contract::Ring* ring_ = nullptr;        // null: calls are not recorded
  std::uint16_t trace_number_ = 0;        // of this communicator in the trace

  std::atomic<bool> failed_ = false;
  std::atomic<bool> heard_ = false;  // a call has reported the failure to the program
  std::mutex failure_mutex_;         // guards failure_ until failed_ is true, when it is final
  Error failure_;
};

}  // namespace dtrun::comm
