// A communicator that stages its operations.
//
// One thread advances all operations: collectives in the order of the calls, with rounds of two of them in
// flight at a time, and messages beside them. A stream only waits for copies that the device already has. So
// the device never waits for the host or for another rank, and no call of its library can wait for them
// either. Ordering a stream therefore blocks the host until the data has arrived. Any failure ends the
// communicator; every later call reports its first cause. Owned by core; thread classes as in
// dtrun/abi/backend.h, but requests order streams on any thread. Rationale:
// docs/decisions/031-staging-without-waits.md.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/comm/staging/staged.h"
#include "core/comm/staging/staging.h"
#include "dtrun/plugin/backend.hpp"
#include "dtrun/plugin/first_failure.hpp"
#include "dtrun/plugin/patience.hpp"

namespace dtrun::comm {

class StagedRequest;

// The wire's communicator.
class StagingWire {
 public:
  StagingWire(const Staging& staging, const dtrun_comm_params& params);
  ~StagingWire();
  StagingWire(const StagingWire&) = delete;
  StagingWire& operator=(const StagingWire&) = delete;

  // Null: it is done. Throws.
  dtrun_request* Start(dtrun_op op, const sdk::Deadline& deadline);
  bool Test(dtrun_request* request);
  void Release(dtrun_request* request) { table_.req_release(request); }
  // Waits at most `timeout` for its end.
  void Wait(dtrun_request* request, sdk::Nanoseconds timeout);
  // [abort-safe]
  void Abort(const std::string& reason);
  // The minimum of all ranks' values, or `otherwise` if the wire cannot compute it. Before any operation.
  std::uint64_t Least(std::uint64_t value, std::uint64_t otherwise, const sdk::Deadline& deadline);
  // Whether the wire supports that operation in the device's memory.
  bool Takes(const dtrun_op& op, const DeviceCalls& device) const;
  // Registers device memory that the wire supports; ignores other memory.
  void Register(const dtrun_mem_params& params, void* memory);
  void Deregister(void* memory);

 private:
  const dtrun_backend& table_;
  dtrun_instance* const instance_;
  std::uint64_t kinds_ = 0;  // of devices with memory that it supports
  const bool alone_;         // one rank: nothing to send
  bool has_least_ = false;
  const std::string name_;
  std::optional<sdk::KvPart> kv_;  // none in a world of one that dtrun did not start
  dtrun_backend_comm* comm_ = nullptr;
  std::uint64_t calls_ = 0;
  std::mutex mutex_;  // guards registered_
  std::set<void*> registered_;
};

class StagingCommunicator final : public sdk::Communicator<StagedRequest> {
 public:
  StagingCommunicator(const Staging& staging, const dtrun_comm_params& params);
  ~StagingCommunicator() override;

  std::unique_ptr<StagedRequest> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;
  void GroupBegin() override;
  void GroupEnd() override;
  void MemRegister(const dtrun_mem_params& params, void* memory) override;
  void MemDeregister(void* memory) override;

  // ---- for StagedRequest ----

  // Throws the failure that ended it.
  bool Poll(const Staged& operation);
  bool Wait(const Staged& operation, sdk::Nanoseconds timeout);
  // Blocks until the device has the copies that `stream` must wait for.
  void OrderAfter(const Staged& operation, const dtrun_stream& stream);

 private:
  // An operation of an open group, which starts at its end.
  struct Grouped {
    std::shared_ptr<Staged> operation;
    std::optional<dtrun_stream> stream;
  };
  using Operations = std::deque<std::shared_ptr<Staged>>;

  // Records the current position of the operations' streams, and hands the operations to the thread.
  void Launch(const std::vector<Grouped>& operations);
  // It has an outcome, or belongs to a group that will not start any more.
  bool Ended(const Staged& operation) const;
  // Its events may be freed afterwards.
  void End(Staged& operation, Staged::Outcome outcome);

  void Run();
  // False if nothing could be advanced.
  bool AdvanceAll();
  bool AdvanceOne(Staged& operation, bool may_send, bool first);
  // Called when the thread has nothing to advance.
  void Pause();
  void Finish(Staged& operation);
  void Fail(const sdk::Failure& cause);
  void EndAll();
  static sdk::Failure TimedOut(const Staged& operation, const std::string& name);

  const bool coreless_;
  const sdk::Health health_;
  const sdk::Kv kv_;
  const std::string name_;
  const int rank_, size_;
  const DeviceCalls device_;
  StagingWire wire_;
  const OwnedStream out_, in_;  // copies of the two directions
  PiecePool pieces_;
  const std::uint64_t piece_bytes_;
  bool grouping_ = false;
  std::vector<Grouped> group_;

  // Used by the thread only.
  Operations collectives_, messages_;
  sdk::Patience patience_;

  std::mutex mutex_;  // guards the next four, and the events of operations that run
  std::condition_variable changed_;
  Operations queue_;  // not taken by the thread yet
  std::uint64_t ended_ = 0;
  bool stop_ = false;
  sdk::FirstFailure failure_;
  std::thread thread_;
};

class StagedRequest final : public sdk::Request {
 public:
  StagedRequest(StagingCommunicator& comm, std::shared_ptr<Staged> operation)
      : comm_(comm), operation_(std::move(operation)) {}
  ~StagedRequest() override {
    try {
      comm_.Wait(*operation_, sdk::kNoLimit);
    } catch (const sdk::Failure&) {
      // it has ended, and the communicator keeps the reason
    }
  }
  bool Test() override { return comm_.Poll(*operation_); }
  bool Wait(sdk::Nanoseconds timeout) override { return comm_.Wait(*operation_, timeout); }
  void WaitStream(const dtrun_stream& stream) override { comm_.OrderAfter(*operation_, stream); }

 private:
  StagingCommunicator& comm_;
  const std::shared_ptr<Staged> operation_;
};

}  // namespace dtrun::comm
