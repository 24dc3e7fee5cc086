// Sends and receives of a communicator: handed to MPI at once, so that two ranks that send to
// each other first and receive second never block.
//
// MPI moves messages only during calls: a waiting thread makes them, and for the rest a
// thread, which is made for the first message without an immediate waiter. Any thread.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "dtrun/kernels.hpp"
#include "dtrun/plugin/block_signals.hpp"
#include "dtrun/plugin/cuda_scope.hpp"
#include "dtrun/plugin/op.hpp"
#include "dtrun/plugin/patience.hpp"
#include "library.h"
#include "team.h"

namespace dtrun::mpi_plugin {

// A send or receive between enqueue and its end. The mutex of Messages guards it.
struct Message {
  dtrun_op op{};
  sdk::Deadline deadline;
  sdk::Nanoseconds timeout = sdk::kNoLimit;
  std::optional<BigType> block;
  MPI_Request request{};
  bool posted = false;
  bool done = false;
  std::optional<sdk::Failure> failure;
};

class Messages : public std::enable_shared_from_this<Messages> {
 public:
  Messages(const sdk::Host& host, std::shared_ptr<Team> team, std::uint64_t limit, bool cuda)
      : host_(host), team_(std::move(team)), limit_(limit), cuda_(cuda) {}

  // `attended`: the caller will wait at once.
  std::shared_ptr<Message> Add(const dtrun_op& op, bool attended) {
    const auto largest_tag = static_cast<std::uint32_t>(team_->world().largest_tag());
    if (largest_tag < 0x7fffffffu && op.tag > largest_tag) {
      throw Failure(DTRUN_UNSUPPORTED, sdk::OperationText(op) + ": this MPI carries tags up to " +
                                           std::to_string(largest_tag) + "; use smaller tags");
    }
    auto message = std::make_shared<Message>();
    message->op = op;
    message->timeout = sdk::Nanoseconds(op.timeout_ns);
    message->deadline = sdk::Deadline(message->timeout);
    const Lock lock(mutex_);
    team_->failure().ThrowIfSet();
    const std::size_t width = kernels::ElementBytes(op.dtype);
    message->block.emplace(api(), team_->world().combiners().Mover(width), width, op.count, limit_);
    Gate gate;
    // MPI moves it while any message is tested.
    if (void* const context = cuda_ ? ContextOf(op) : nullptr; context != nullptr) context_ = context;
    const sdk::CudaScope scope(context_);
    const bool all_posted = pending_.empty() || pending_.back()->posted;
    if (all_posted && Enter(gate)) Post(*message);
    pending_.push_back(message);
    if (!attended) EnsureMover();
    return message;
  }

  // False when it is still under way at `until`. Throws its failure.
  bool Wait(Message& message, const sdk::Deadline& until) {
    sdk::Patience patience(kTries, kShortNap, kLongNap);
    const sdk::Deadline& earlier = until.at() < message.deadline.at() ? until : message.deadline;
    const auto since = sdk::Deadline::Clock::now();
    for (auto next_look = since;;) {
      {
        Lock lock(mutex_);
        if (!message.done) Progress();
        if (message.done) {
          if (message.failure) throw *message.failure;
          return true;
        }
      }
      const auto now = sdk::Deadline::Clock::now();
      if (now >= next_look) {
        Observe(message, now - since >= kLastLook);
        next_look = now + kMessageLook;
      }
      if (team_->failure()) continue;
      if (until.at() <= now) return false;
      patience.Wait(earlier);
    }
  }

  // REQUIRES that no message is left. Ends the thread; false when it is left behind in MPI.
  bool Stop() {
    Lock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::seconds(1), [this] { return !mover_; });
  }

 private:
  using Failure = sdk::Failure;
  // A waiter tries this often before it begins to sleep, then longer and longer.
  static constexpr int kTries = 200;
  static constexpr sdk::Nanoseconds kShortNap = std::chrono::microseconds(20);
  static constexpr sdk::Nanoseconds kLongNap = std::chrono::microseconds(500);
  // Between looks for ranks that died or gave up.
  static constexpr sdk::Nanoseconds kMessageLook = std::chrono::milliseconds(20);
  // What a receive that was cancelled gets to come back.
  static constexpr sdk::Nanoseconds kMessageGrace = std::chrono::milliseconds(200);
  // How long a message of a rank that has left may still be on its way.
  static constexpr sdk::Nanoseconds kLastLook = std::chrono::milliseconds(100);

  static bool High(std::uint32_t tag) { return tag >> 31 != 0; }
  static void* ContextOf(const dtrun_op& op) {
    return sdk::CudaScope::ContextOf(op.kind == DTRUN_SEND ? op.send : op.recv);
  }
  static int Low(std::uint32_t tag) { return static_cast<int>(tag & 0x7fffffffu); }

  using Lock = std::unique_lock<std::mutex>;
  using Gate = std::unique_lock<std::timed_mutex>;

  // With the lock held, and the gate where MPI has one.
  void Post(Message& message) {
    const dtrun_op& op = message.op;
    const BigType& block = *message.block;
    const MPI_Comm comm = High(op.tag) ? team_->handles().high : team_->handles().main;
    if (op.kind == DTRUN_SEND) {
      api().MPI_Isend(op.send, block.count(), block.type(), op.peer, Low(op.tag), comm, &message.request);
    } else {
      const int peer = op.peer == DTRUN_ANY_SOURCE ? MPI_ANY_SOURCE : op.peer;
      api().MPI_Irecv(op.recv, block.count(), block.type(), peer, Low(op.tag), comm, &message.request);
    }
    message.posted = true;
  }

  bool TestOne(Message& message) {
    if (message.done) return true;
    if (!message.posted) return false;
    MPI_Status status{};
    int ended = 0;
    api().MPI_Test(&message.request, &ended, &status);
    if (ended == 0) return false;
    if (message.op.kind == DTRUN_RECV) {
      CheckLength(message, status);
      if (message.op.source != nullptr) *message.op.source = status.MPI_SOURCE;
    }
    message.done = true;
    return true;
  }

  // Posts what waits for that and tests all. True when something ended.
  bool Progress() {
    if (pending_.empty()) return false;
    const sdk::CudaScope scope(context_);
    Gate gate;
    bool ended = false;
    try {
      if (!team_->failure()) {
        if (!Enter(gate)) return false;
        for (const auto& message : pending_) {
          if (!message->posted) Post(*message);
          ended |= TestOne(*message);
        }
      }
    } catch (const sdk::Failure& failure) {
      team_->Fail(failure);
    }
    if (team_->failure()) {
      std::timed_mutex* const one_at_a_time = team_->world().gate();
      if (one_at_a_time != nullptr && !gate.owns_lock()) gate = Gate(*one_at_a_time, kMessageGrace);
      const bool may_call = one_at_a_time == nullptr || gate.owns_lock();
      for (const auto& message : pending_) Drop(*message, may_call);
      ended = true;
    }
    const auto is_done = [](const auto& message) { return message->done; };
    pending_.erase(std::remove_if(pending_.begin(), pending_.end(), is_done), pending_.end());
    if (ended) changed_.notify_all();
    return ended;
  }

  void CheckLength(const Message& message, MPI_Status& status) {
    const BigType& block = *message.block;
    int count = 0;
    api().MPI_Get_count(&status, block.type(), &count);
    if (count == block.count()) return;
    throw Failure(DTRUN_INVALID_ARGUMENT,
                  sdk::OperationText(message.op) + ": the message from rank " +
                      std::to_string(status.MPI_SOURCE) + " is shorter than the " +
                      std::to_string(message.op.count) + " elements that are expected",
                  status.MPI_SOURCE);
  }

  // Ends a message of a failed team. `may_call`: MPI may be called now.
  // A receive is taken back, so that MPI writes no more to the caller's memory. A send cannot
  // be: MPI may read its buffer until the peer has it or is gone.
  void Drop(Message& message, bool may_call) {
    if (message.done) return;
    message.done = true;
    message.failure = *team_->failure();
    if (!message.posted || !may_call) return;
    int ended = 0;
    MPI_Status status{};
    if (!api().MPI_Test.Try(&message.request, &ended, &status) || ended != 0) return;
    if (message.op.kind != DTRUN_RECV || !api().MPI_Cancel.Try(&message.request)) return;
    const sdk::Deadline end(kMessageGrace);
    while (ended == 0 && !end.passed()) {
      if (!api().MPI_Test.Try(&message.request, &ended, &status)) return;
    }
  }

  void Observe(Message& message, bool last_look) {
    const int peer = message.op.peer;
    team_->CheckPeers(!last_look ? Team::kNoPeer : peer == DTRUN_ANY_SOURCE ? Team::kEveryPeer : peer);
    if (team_->failure() || !message.deadline.passed()) return;
    const bool named = peer != DTRUN_ANY_SOURCE;
    team_->Fail(Failure(DTRUN_TIMEOUT,
                        sdk::OperationText(message.op) + " on '" + team_->name() + "' did not end within " +
                            sdk::DurationText(message.timeout) + "; " +
                            (named ? "rank " + std::to_string(peer) + " has" : std::string("no rank has")) +
                            (message.op.kind == DTRUN_SEND ? " taken" : " sent") + " the message",
                        named ? peer : -1));
  }

  void EnsureMover() {
    changed_.notify_all();
    if (mover_) return;
    const sdk::BlockSignals block;
    std::thread([self = shared_from_this()] { self->Move(); }).detach();
    mover_ = true;
  }

  void Move() {
    const sdk::ThreadScope scope(host_, "dtrun-mpi-move");
    sdk::Patience patience(0, kShortNap, kLongNap);
    Lock lock(mutex_);
    while (!stop_) {
      if (pending_.empty()) {
        changed_.wait(lock, [this] { return stop_ || !pending_.empty(); });
        patience.Reset();
        continue;
      }
      if (Progress()) patience.Reset();
      lock.unlock();
      patience.Wait(sdk::Deadline());
      lock.lock();
    }
    mover_ = false;
    changed_.notify_all();
  }

  const Api& api() const { return team_->api(); }
  // True when MPI may be called now.
  bool Enter(Gate& gate) {
    std::timed_mutex* const one_at_a_time = team_->world().gate();
    if (one_at_a_time == nullptr) return true;
    gate = Gate(*one_at_a_time, std::try_to_lock);
    return gate.owns_lock();
  }

  const sdk::Host host_;
  const std::shared_ptr<Team> team_;
  const std::uint64_t limit_;
  const bool cuda_;  // messages may be in memory of CUDA

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Message>> pending_;
  void* context_ = nullptr;  // of CUDA, of the last message that has one
  bool mover_ = false;
  bool stop_ = false;
};

class MessageRequest final : public sdk::Request {
 public:
  MessageRequest(std::shared_ptr<Messages> messages, std::shared_ptr<Message> message)
      : messages_(std::move(messages)), message_(std::move(message)) {}
  ~MessageRequest() override {
    try {
      messages_->Wait(*message_, sdk::Deadline());
    } catch (const sdk::Failure&) {  // who drops a request does not ask how it ended
    }
  }

  bool Test() override { return messages_->Wait(*message_, sdk::Deadline(sdk::Nanoseconds(0))); }
  bool Wait(sdk::Nanoseconds timeout) override { return messages_->Wait(*message_, sdk::Deadline(timeout)); }

 private:
  const std::shared_ptr<Messages> messages_;
  const std::shared_ptr<Message> message_;
};

}  // namespace dtrun::mpi_plugin
