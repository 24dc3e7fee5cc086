// A communicator: what stands between a program's call and the backend's enqueue.
//
// Checks arguments, numbers collectives, keeps their order, remembers the first failure,
// aborts, and says which operation failed. The C API's opaque types are these classes.
// Owned by the runtime; any thread may call, the destructor only when nobody else does.
// A blocking call takes one lock and allocates nothing of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/comm/operation.h"
#include "dtrun/dtrun.h"

namespace dtrun::comm {

// How a communicator comes to be, and whom it tells.
struct Making {
  dtrun_backend backend{};             // full table
  dtrun_instance* instance = nullptr;  // outlives the communicator
  std::string backend_name;
  std::string name;  // "world"
  int rank = 0;
  int size = 1;
  int host_count = 1;
  std::uint64_t generation = 0;
  dtrun_kv* kv = nullptr;   // outlives the communicator
  Nanoseconds timeout{-1};  // of creation and of every operation; negative: no limit
  // The first failure that a peer or the time caused: rank (-1 unknown), text.
  std::function<void(int peer, std::string_view what)> report;
  // It was aborted on purpose.
  std::function<void(std::string_view reason)> aborted;
};

}  // namespace dtrun::comm

// An operation that was started and not released yet.
struct dtrun_work {
  dtrun_comm* comm = nullptr;        // null once the communicator is gone
  dtrun_request* request = nullptr;  // null: there was nothing to do
  dtrun_op op{};
  std::atomic<bool> succeeded = false;  // reported; never asked of the backend again
  dtrun_work* next = nullptr;           // of the communicator's list
  dtrun_work** link = nullptr;          // what points at this one
};

struct dtrun_comm {
 public:
  static dtrun::Result<std::unique_ptr<dtrun_comm>> Create(dtrun::comm::Making making);
  // Ends what still runs, aborting it where the backend can. Works that were not released
  // stay valid to release, and to nothing else.
  ~dtrun_comm();
  dtrun_comm(const dtrun_comm&) = delete;
  dtrun_comm& operator=(const dtrun_comm&) = delete;

  int rank() const { return making_.rank; }
  int size() const { return making_.size; }
  const std::string& backend_name() const { return making_.backend_name; }

  // Runs `op`, or starts it when `out` is not null. `op` has everything but sequence and
  // timeout, which are filled here.
  dtrun_status Start(dtrun_op& op, dtrun_work** out, dtrun_error* err);
  dtrun_status Test(dtrun_work& work, std::int32_t* done, dtrun_error* err);
  dtrun_status Wait(dtrun_work& work, std::int64_t timeout_ns, dtrun_error* err);
  void Release(dtrun_work* work);
  dtrun_status Abort(std::string_view reason, dtrun_error* err);

 private:
  explicit dtrun_comm(dtrun::comm::Making making) : making_(std::move(making)) {}
  // Remembers the failure of `op` if it is the first, and hands out the first.
  dtrun_status Fail(const dtrun_op& op, dtrun_status status, const dtrun_error& cause, dtrun_error* err);
  // True when this failure is the first.
  bool Remember(const dtrun::Error& error, const dtrun_error& cause);
  dtrun_status FirstFailure(dtrun_error* err);
  void Link(dtrun_work& work);
  static void Unlink(dtrun_work& work);

  dtrun::comm::Making making_;
  dtrun::comm::Scope scope_;
  dtrun_backend_comm* comm_ = nullptr;

  std::mutex enqueue_mutex_;  // guards the next two, and the order of enqueue
  std::uint64_t sequence_ = 0;
  dtrun_work* works_ = nullptr;

  std::atomic<bool> failed_ = false;
  std::mutex failure_mutex_;  // guards failure_ until failed_ is true, when it is final
  dtrun_error failure_{};
};
