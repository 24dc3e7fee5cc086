// A communicator of the nccl backend.
//
// Operations are launched by the thread that enqueues them, on the caller's stream or on one of
// the communicator's own; no thread belongs to it. Who waits also watches: for NCCL's errors,
// for deadlines, and, once it has waited long, for what other ranks announced. Any failure ends
// the communicator; its first cause is what every later call reports. Owned by core; thread
// classes as in dtrun/abi/backend.h.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "comm_config.h"
#include "device_memory.h"
#include "dtrun/plugin/first_failure.hpp"
#include "dtrun/plugin/membership.hpp"
#include "handle.h"
#include "operation.h"
#include "registered.h"

namespace dtrun::nccl_plugin {

class NcclRequest;

// What a communicator needs of its backend, which outlives it.
struct Environment {
  const sdk::Host& host;
  const NcclApi& nccl;
  const CudaApi& cuda;
  const CommConfig& config;
};

class NcclCommunicator final : public sdk::Communicator<NcclRequest> {
 public:
  // Joins the other ranks, who all are there, on `device`.
  NcclCommunicator(const Environment& environment, const sdk::CommParams& params, int device,
                   const sdk::Deadline& deadline);
  ~NcclCommunicator() override;

  std::unique_ptr<NcclRequest> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;
  void GroupBegin() override;
  void GroupEnd() override;
  void* MemAlloc(const dtrun_mem_params& params) override;
  void MemFree(void* memory) override { memory_->Free(memory); }
  void MemRegister(const dtrun_mem_params& params, void* memory) override;
  void MemDeregister(void* memory) override { memory_->Deregister(memory); }

  // ---- for NcclRequest ----

  // True when it is done; throws what ended it.
  bool Poll(Operation& operation);
  bool Wait(Operation& operation, sdk::Nanoseconds timeout);
  void OrderAfter(Operation& operation, const dtrun_stream& stream);
  // The last that is heard of `operation`.
  void Release(Operation& operation);

 private:
  std::unique_ptr<Handle> Connect(const sdk::CommParams& params, const sdk::Deadline& deadline);
  // Where NCCL would overwrite what it has yet to send.
  void CopyInPlace(Operation& operation) const;
  void Count(Operation& operation);

  void Launch(const std::vector<std::shared_ptr<Operation>>& operations);
  void AwaitLaunch(const Operation& operation);
  void Record(const std::vector<std::shared_ptr<Operation>>& operations);

  // The phase after asking the device. REQUIRES mutex_ held.
  Phase Ask(Operation& operation);
  void Watch(const Operation& operation);
  void LookAround(const Operation& operation);
  // Ranks that have not said that they wait in that collective.
  std::vector<int> NotWaitingIn(std::uint64_t sequence) const;
  sdk::Failure TimedOut(const Operation& operation) const;

  // Ends the communicator with `cause` unless it has ended.
  void Fail(const sdk::Failure& cause);

  const Environment environment_;
  const sdk::Log log_;
  const sdk::Health health_;
  const int device_;
  const sdk::Membership members_;

  // In the order in which they are made.
  std::unique_ptr<OwnStream> stream_;
  DeviceBuffer scratch_;
  std::unique_ptr<EventPool> events_;
  std::unique_ptr<Handle> handle_;
  std::unique_ptr<RegisteredMemory> memory_;
  std::string bootstrap_;  // where rank 0 listens; for messages

  std::mutex mutex_;           // of the operations' phases, and of live_
  std::set<Operation*> live_;  // launched, outcome unknown
  sdk::FirstFailure failure_;

  bool grouping_ = false;
  std::vector<std::shared_ptr<Operation>> group_;

  Progress progress_;  // [comm-serial]
  std::atomic<std::uint64_t> last_enqueued_{0};
  std::atomic<std::uint64_t> last_completed_{0};
  std::atomic<std::uint64_t> announced_wait_{0};
  std::atomic<std::int64_t> next_state_{0};  // when to ask NCCL next, on Clock
  std::atomic<std::int64_t> next_look_{0};   // when to read the key-value space next
};

// An operation under way, as core holds it.
class NcclRequest final : public sdk::Request {
 public:
  NcclRequest(NcclCommunicator& comm, std::shared_ptr<Operation> operation)
      : comm_(comm), operation_(std::move(operation)) {}
  // Waits, unless a stream was ordered after the operation: then the stream keeps the buffers'
  // users in order, and the host goes on.
  ~NcclRequest() override { comm_.Release(*operation_); }

  bool Test() override { return comm_.Poll(*operation_); }
  bool Wait(sdk::Nanoseconds timeout) override { return comm_.Wait(*operation_, timeout); }
  void WaitStream(const dtrun_stream& stream) override { comm_.OrderAfter(*operation_, stream); }

 private:
  NcclCommunicator& comm_;
  const std::shared_ptr<Operation> operation_;
};

}  // namespace dtrun::nccl_plugin
