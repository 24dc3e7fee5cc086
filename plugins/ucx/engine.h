// A communicator of the ucx backend, and its requests.
//
// Drives a worker: carries out collectives in order, gives sends and receives to UCX at once, sleeps when
// there is nothing to do, and ends everything when something fails. Owned by core; thread classes as in
// dtrun/abi/backend.h. One thread at a time drives. That is a thread of the engine's own,
// except that a thread which waits for an operation it marked as blocking drives instead, so
// that a small collective costs no change of threads; the engine's thread keeps away for a
// moment after each such call. Public methods: any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "dtrun/algorithms.hpp"
#include "dtrun/plugin/cuda_scope.hpp"
#include "dtrun/plugin/op.hpp"
#include "peer_watch.h"

namespace dtrun::ucx_plugin {

class UcxRequest;
class WorkerMessenger;

// An operation between enqueue and its end, shared by its request and the engine.
struct Operation {
  // `given` is for a communicator of `ranks`.
  Operation(const dtrun_op& given, int ranks, const DeviceMemory& devices)
      : op(given, ranks),
        timeout(given.timeout_ns),
        deadline(timeout),
        text(sdk::OperationText(given)),
        recv_memory(devices.TypeOf(op->recv)),
        send_memory(op->kind == DTRUN_BROADCAST ? recv_memory : devices.TypeOf(op->send)) {
    if (cuda(recv_memory) || cuda(send_memory))
      cuda_context = sdk::CudaScope::ContextOf(cuda(recv_memory) ? op->recv : op->send);
  }

  static bool cuda(ucs_memory_type_t type) {
    return type == UCS_MEMORY_TYPE_CUDA || type == UCS_MEMORY_TYPE_CUDA_MANAGED;
  }
  bool on_device() const {
    return recv_memory != UCS_MEMORY_TYPE_HOST || send_memory != UCS_MEMORY_TYPE_HOST;
  }

  bool collective() const { return sdk::IsCollective(op->kind); }
  // The thread that enqueued it will wait for it at once.
  bool blocking() const { return (op->flags & DTRUN_OP_BLOCKING) != 0; }

  const sdk::OwnedOp op;
  const sdk::Nanoseconds timeout;
  const sdk::Deadline deadline;
  const std::string text;  // "allreduce 7", "recv from rank 1 with tag 3"

  const ucs_memory_type_t recv_memory, send_memory;
  void* cuda_context = nullptr;  // of its buffers; null: none

  Transfer transfer;  // of a message; only for the thread that drives the engine

  std::atomic<bool> done{false};
  // It has failed, and UCX has not let go of its buffers yet: a wait ends, a release does not.
  std::atomic<bool> failed{false};
  std::optional<sdk::Failure> failure;  // constant once failed or done
};

class Engine final : public sdk::Communicator<UcxRequest> {
 public:
  // Joins the communicator. Throws when not all ranks come in time.
  Engine(const sdk::Host& host, const sdk::CommParams& params, std::shared_ptr<Context> context,
         const DeviceMemory& devices);
  ~Engine() override;

  std::unique_ptr<UcxRequest> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;
  void MemRegister(const dtrun_mem_params& params, void* memory) override;
  void MemDeregister(void* memory) override;
  // False when `timeout` came first. Throws the operation's failure.
  // `outcome`: a failure is enough, also while UCX has not let go of the buffers.
  bool Wait(Operation& operation, sdk::Nanoseconds timeout, bool outcome = true);

  const sdk::Membership& members() const { return watch_.members(); }

  // ---- for the thread that drives ----
  // Lets time pass until the message is done; throws the cause when it cannot be.
  void Await(const Transfer& transfer);
  Worker& worker() { return worker_; }
  const Operation& current() const { return *current_; }
  // Ends all messages and connections, and tells the other ranks why when the cause is known.
  void Shut() noexcept;

 private:
  class Idle;

  void Work();
  bool HasWork() const;
  void DriveWhile(const Operation* wanted);
  void Drive(const Operation* wanted);
  void Turn(Idle& idle);
  void TakeSubmitted();
  void StartMessage(const std::shared_ptr<Operation>& operation);
  bool ReapMessages();
  void RunJob(const std::shared_ptr<Operation>& job);
  void TellRoutes();
  void Sleep();
  void Complete(Operation& operation, std::optional<sdk::Failure> failure);
  void CheckTimes();
  std::set<int> AwaitedRanks() const;
  void CompleteAllFailed();
  void Wake();
  void TellAllFailed();
  bool Pending() const { return !messages_.empty() || !jobs_.empty() || current_ != nullptr; }

  const sdk::Host host_;
  const std::shared_ptr<Context> context_;
  const DeviceMemory& devices_;
  PeerWatch watch_;
  const sdk::FirstFailure& failure_ = watch_.failure();
  const std::unique_ptr<WorkerMessenger> messenger_;  // outlives the worker, which writes into it
  void* cuda_context_ = nullptr;  // of the last operation that has one; current on the thread that drives
  sdk::CudaScope cuda_;           // for that thread, and for the end of the worker
  Worker worker_;
  const int wakeup_;           // an eventfd that ends the sleep of the thread that drives
  const bool oversubscribed_;  // more ranks on this host than cores

  // The thread that drives.
  std::shared_ptr<Operation> current_;  // the collective under way
  std::deque<std::shared_ptr<Operation>> jobs_;
  std::vector<std::shared_ptr<Operation>> messages_;
  std::vector<std::shared_ptr<Operation>> failed_messages_;  // messages that failed
  int awaited_ = -1;                                         // the rank that the collective waits for
  Clock::time_point next_deadline_ = kNever;
  static constexpr std::chrono::microseconds kFirstNap{50};
  sdk::Nanoseconds nap_ = kFirstNap;
  bool routes_told_ = false;
  bool shut_ = false;
  std::atomic<bool> ended_{false};  // what was pending at the failure has been completed

  std::mutex mutex_;
  std::condition_variable worker_wakes_;
  std::condition_variable changed_;  // something is done, or no thread drives
  std::deque<std::shared_ptr<Operation>> submitted_;
  std::string doing_;   // for diagnostics
  std::string routes_;  // for diagnostics: what UCX chose
  bool driving_ = false;
  bool sleeping_ = false;  // the thread that drives
  int waiters_ = 0;
  int wanting_ = 0;           // waiters that would drive
  bool left_behind_ = false;  // a caller stopped driving with operations pending
  std::uint64_t calls_ = 0;   // how often a caller drove
  bool stop_ = false;
  std::thread thread_;
};

class UcxRequest final : public sdk::Request {
 public:
  UcxRequest(Engine& engine, std::shared_ptr<Operation> operation)
      : engine_(engine), operation_(std::move(operation)) {}
  ~UcxRequest() override {
    try {
      engine_.Wait(*operation_, sdk::kNoLimit, false);
    } catch (const sdk::Failure&) {
      // Core dropped the request: it needs its end, not its outcome.
    }
  }

  bool Test() override { return Wait(sdk::Nanoseconds(0)); }
  bool Wait(sdk::Nanoseconds timeout) override { return engine_.Wait(*operation_, timeout); }

 private:
  Engine& engine_;
  const std::shared_ptr<Operation> operation_;
};

// The messages of collectives, for the algorithms of the SDK. Owned by an Engine, used by the thread that
// drives it.
class WorkerMessenger final : public algorithms::Messenger {
 public:
  explicit WorkerMessenger(Engine& engine) : engine_(engine) {}

  int rank() const override { return engine_.members().rank(); }
  int size() const override { return engine_.members().size(); }
  Message Send(int peer, const void* data, std::size_t bytes) override {
    Transfer& transfer = Next(peer, bytes);
    transfer.memory = engine_.current().send_memory;
    engine_.worker().Send(transfer, Tag(rank()), data);
    if (!transfer.done || transfer.status != UCS_OK) return &transfer;
    free_.push_back(&transfer);  // small ones have left at once
    return nullptr;
  }
  Message Recv(int peer, void* data, std::size_t bytes) override {
    Transfer& transfer = Next(peer, bytes);
    transfer.memory = engine_.current().recv_memory;
    engine_.worker().Recv(transfer, Tag(peer), kWholeTag, data);
    return &transfer;
  }
  void Wait(Message message) override {
    auto* const transfer = static_cast<Transfer*>(message);
    engine_.Await(*transfer);
    free_.push_back(transfer);
  }
  void Cancel() noexcept override { engine_.Shut(); }

 private:
  Transfer& Next(int peer, std::size_t bytes) {
    Transfer* transfer = nullptr;
    if (free_.empty()) {
      transfer = &transfers_.emplace_back();
    } else {
      transfer = free_.back();
      free_.pop_back();
      *transfer = Transfer{};
    }
    transfer->peer = peer;
    transfer->bytes = bytes;
    return *transfer;
  }

  ucp_tag_t Tag(int sender) const {
    return MakeTag(TagUse::kCollective, sender, CallTag(*engine_.current().op));
  }

  Engine& engine_;
  std::deque<Transfer> transfers_;
  std::vector<Transfer*> free_;
};

}  // namespace dtrun::ucx_plugin
