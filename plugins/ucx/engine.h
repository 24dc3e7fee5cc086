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
#include <thread>

#include "dtrun/plugin/first_failure.hpp"
#include "dtrun/plugin/membership.hpp"
#include "dtrun/plugin/process_watch.hpp"
#include "operation.h"

namespace dtrun::ucx_plugin {

inline constexpr Clock::time_point kNever = Clock::time_point::max();

class Engine;
class WorkerMessenger;

// How often the store is asked for the others' health while something is pending.
inline constexpr std::chrono::milliseconds kFirstCheck{100};
// UCX's shared memory wakes who waits for a message, but not who waits for room to send one; so
// while there are messages to send, sleep is short.
inline constexpr std::chrono::microseconds kFirstNap{50};

class UcxRequest final : public sdk::Request {
 public:
  UcxRequest(Engine& engine, std::shared_ptr<Operation> operation)
      : engine_(engine), operation_(std::move(operation)) {}
  ~UcxRequest() override;

  bool Test() override { return Wait(sdk::Nanoseconds(0)); }
  bool Wait(sdk::Nanoseconds timeout) override;

 private:
  Engine& engine_;
  const std::shared_ptr<Operation> operation_;
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
  bool Wait(Operation& operation, sdk::Nanoseconds timeout);

  const sdk::Membership& members() const { return members_; }

  // ---- for the thread that drives ----
  // Lets time pass until the message is done; throws the cause when it cannot be.
  void Await(const Transfer& transfer);
  Worker& worker() { return worker_; }
  const Operation& current() const { return *current_; }
  // Ends all messages and connections, and tells the other ranks why when the cause is known.
  void Shut() noexcept;
  void Report() noexcept;

 private:
  class Idle;
  // The topic of Join: which process a rank is, a newline, the address of its worker.
  static constexpr char kPlace[] = "place";

  void Work();
  // Ends everything. The first cause stays.
  void Fail(const sdk::Failure& failure) { End(failure, false); }
  // `theirs`: another rank has published it.
  void End(const sdk::Failure& failure, bool theirs);
  bool HasWork() const;
  void DriveWhile(const Operation* wanted);
  void Drive(const Operation* wanted);
  void Turn(Idle& idle);
  void TakeSubmitted();
  void StartMessage(const std::shared_ptr<Operation>& operation);
  void ReapMessages();
  void RunJob(const std::shared_ptr<Operation>& job);
  void TellRoutes();
  void Sleep();
  void Complete(Operation& operation, std::optional<sdk::Failure> failure);
  void CheckTransfer(const Transfer& transfer, const std::string& text);
  void CheckTimes();
  void CheckPeers();
  void CheckLost();
  void CheckProcesses();
  void Lose(int peer, const std::string& how);
  std::string AddressOf(int peer);
  void CompleteAllFailed();
  void Wake();
  bool Pending() const { return !messages_.empty() || !jobs_.empty() || current_ != nullptr; }

  const sdk::Host host_;
  const std::shared_ptr<Context> context_;
  const DeviceMemory& devices_;
  const sdk::Membership members_;
  const std::unique_ptr<WorkerMessenger> messenger_;  // outlives the worker, which writes into it
  void* cuda_context_ =
      nullptr;           // of the last operation that has one: current on whoever drives, who owns it
  sdk::CudaScope cuda_;  // and for the end of the worker
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
  Clock::time_point next_check_ = kNever;  // when to ask the store how the others are
  sdk::Nanoseconds nap_;
  sdk::Nanoseconds check_interval_;
  std::vector<int> seen_left_;   // per rank: how often
  sdk::ProcessWatch processes_;  // of this host that this rank exchanges messages with
  bool routes_told_ = false;
  bool shut_ = false;
  bool told_ = false;                   // the other ranks know of the failure
  std::atomic<bool> reported_ = false;  // core does
  std::atomic<bool> ended_{false};      // what was pending at the failure has been completed

  std::mutex mutex_;
  std::condition_variable worker_wakes_;
  std::condition_variable changed_;  // something is done, or nobody drives
  std::deque<std::shared_ptr<Operation>> submitted_;
  std::string doing_;   // for diagnostics
  std::string routes_;  // for diagnostics: what UCX chose
  bool driving_ = false;
  bool sleeping_ = false;  // the thread that drives
  int waiters_ = 0;
  int wanting_ = 0;           // of them: those that would drive
  bool left_behind_ = false;  // a caller stopped driving with operations pending
  std::uint64_t calls_ = 0;   // how often a caller drove
  bool stop_ = false;
  bool theirs_ = false;  // another rank has published failure_; set before it
  sdk::FirstFailure failure_;
  std::thread thread_;
};

}  // namespace dtrun::ucx_plugin
