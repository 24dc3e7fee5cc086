// A communicator: the layer between a program's call and the backend's enqueue.
//
// Checks arguments, numbers collectives, keeps their order and enforces their deadlines. The C API's opaque
// types are these classes. Owned by the runtime or its family. Any thread may call; the destructor must run
// alone. A blocking call takes one lock and makes no allocation of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "core/comm/comm_devices.h"
#include "core/comm/comm_memory.h"
#include "core/comm/comm_state.h"
#include "core/comm/extension.h"
#include "core/comm/work.h"
#include "dtrun/device.h"

struct dtrun_comm {
 public:
  static dtrun::Result<std::unique_ptr<dtrun_comm>> Create(dtrun::comm::Making making);
  // Ends operations still running, and aborts them if the backend can. Works that were not released may only
  // be released afterwards.
  ~dtrun_comm();
  // As of dtrun_work: IsHeld detects one that has ended until 64 others have.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* comm);
  static bool IsHeld(const dtrun_comm* comm);
  dtrun_comm(const dtrun_comm&) = delete;
  dtrun_comm& operator=(const dtrun_comm&) = delete;

  int rank() const { return state_.making.rank; }
  int size() const { return state_.making.size; }
  const dtrun::comm::Making& making() const { return state_.making; }
  // The backend's communicator.
  dtrun_backend_comm* raw() const { return state_.host.comm; }
  dtrun::comm::CommDevices& devices() { return devices_; }
  dtrun::comm::CommMemory& memory() { return memory_; }
  // The extension `id` of a backend that carries it: dtrun_comm_extension.
  dtrun::Result<dtrun_extension> Extension(const char* id) const {
    return dtrun::comm::FindExtension(state_.making, state_.Routes(), id);
  }
  // The first failure, if there is one.
  dtrun::Status Usable() { return state_.Usable(); }

  // For an operation of unknown origin, before Start.
  void ClearUnused(dtrun_op& op) const { dtrun::comm::ClearUnused(op, state_.host.scope); }
  // Runs `op`, or starts it if `out` is not null or a group is open. Fills in sequence and flags, and the
  // timeout if it is 0.
  dtrun_status Start(dtrun_op& op, dtrun_work** out, dtrun_error* err) {
    return StartOn(state_.host, op, nullptr, out, err);
  }
  // Starts `op` on the stream. `out` null: returns no handle.
  dtrun_status StartOnStream(dtrun_op& op, const dtrun_stream& stream, dtrun_work** out, dtrun_error* err);
  dtrun_status Test(dtrun_work& work, std::int32_t* done, dtrun_error* err);
  // DTRUN_PENDING if it still runs after timeout_ns.
  dtrun_status Wait(dtrun_work& work, std::int64_t timeout_ns, dtrun_error* err);
  dtrun_status WaitOnStream(dtrun_work& work, const dtrun_stream& stream, dtrun_error* err);
  void Release(dtrun_work* work);
  // Deletes a work that has outlived its communicator.
  static void Delete(dtrun_work* work);

  dtrun_status GroupBegin(dtrun_error* err);
  // Returns the group's single work, or waits for it if `out` is null.
  dtrun_status GroupEnd(dtrun_work** out, dtrun_error* err);

  dtrun_status Abort(std::string_view reason, dtrun_error* err);
  // Records misuse of a call that returns nothing: logs it and lets the next call fail with it.
  void Misused(const char* call, const dtrun::Error& error);

 private:
  // Operations started between GroupBegin and GroupEnd. Their works are chained by `together`; the first
  // represents all of them.
  struct Group {
    bool open = false;
    std::thread::id owner;
    dtrun_work* first = nullptr;
    dtrun_work** end = nullptr;  // where to link the next one
    bool of_device = false;      // the device's backend has an open group, too
  };

  explicit dtrun_comm(dtrun::comm::Making making);

  // `stream` null: `op` uses host memory.
  dtrun_status StartOn(dtrun::comm::Route& route, dtrun_op& op, const dtrun_stream* stream, dtrun_work** out,
                       dtrun_error* err);
  dtrun::Status BeginGroupOf(const dtrun::comm::Route& route);
  // Adds `op` to the open group. REQUIRES state_.order and a group.
  dtrun::Status JoinGroup(dtrun::comm::Route& route, const dtrun_op& op, bool wants_work);
  // Makes later work on the stream wait for that one operation, not for a chain. Not under it.
  dtrun_status OrderBefore(const dtrun_stream& stream, dtrun_work& work, dtrun_error* err);
  // Waits for the group's operations that no stream waits for; streams wait for the others.
  dtrun_status WaitForHosts(dtrun_work& group, dtrun_error* err);
  // Enqueues `op`; on success turns it into `work`, if that is not null. REQUIRES state_.order and an
  // OperationCall.
  dtrun_status Enqueue(dtrun::comm::Route& route, dtrun_op& op, const dtrun_stream* stream,
                       std::unique_ptr<dtrun_work>& work, dtrun_request** request, dtrun_error* cause);
  // For the trace, after Enqueue. `runs`: the backend has a request. REQUIRES: calls are traced.
  void TraceStarted(const dtrun_op& op, dtrun_status status, std::int64_t began, std::int64_t given,
                    dtrun_work* work, bool runs, bool on_stream);
  // The end of a traced operation was seen.
  void TraceEnded(dtrun_work& work, std::uint16_t flags);
  dtrun_status TestOne(dtrun_work& work, std::int32_t* done, dtrun_error* err);
  dtrun_status WaitOne(dtrun_work& work, std::int64_t timeout_ns, dtrun_error* err);
  // How long a call for it may take, for OperationCall.
  std::int64_t Limit(std::int64_t timeout_ns) const;
  dtrun_status WaitBlocking(const dtrun_op& op, dtrun_request* request, dtrun_error& cause, dtrun_error* err);
  // The backend missed the deadline of `op`: fails and aborts the communicator.
  dtrun_status Overrun(const dtrun::comm::Route& route, const dtrun_op& op, dtrun_error* err);
  // Releases a request, or leaks it if it will never end.
  void ReleaseRequest(const dtrun::comm::Route& route, dtrun_request* request);
  // The answer of a work that has ended with `status`.
  dtrun_status Concluded(dtrun_work& work, dtrun_status status, const dtrun_error& cause, dtrun_error* err);
  // For the flight recorder; only the first call counts.
  void EndMessage(dtrun_work& work) {
    if (!work.over.exchange(true, std::memory_order_relaxed)) state_.NoteMessageEnd(work.op);
  }
  // Deletes a work that is no longer watched.
  void Forget(dtrun_work* work);
  // Ends what runs on devices; dropped operations may finish first.
  void EndWatch();
  void Link(dtrun_work& work);
  static void Unlink(dtrun_work& work);

  dtrun::comm::CommState state_;  // its `order` guards the works and the group
  dtrun::comm::CommDevices devices_{state_};
  dtrun::comm::CommMemory memory_{state_, devices_};
  dtrun_work* works_ = nullptr;
  Group group_;
};
