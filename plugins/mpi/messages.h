// Sends and receives of a communicator: handed to MPI at once, so that two ranks that send to
// each other first and receive second never block.
//
// MPI moves messages only during calls: a waiting thread makes them, and for the rest a
// thread, which is made for the first message without an immediate waiter. Any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

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
  std::shared_ptr<Message> Add(const dtrun_op& op, bool attended);
  // False when it is still under way at `until`. Throws its failure.
  bool Wait(Message& message, const sdk::Deadline& until);
  // REQUIRES that no message is left. Ends the thread; false when it is left behind in MPI.
  bool Stop();

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Gate = std::unique_lock<std::timed_mutex>;

  // With the lock held, and the gate where MPI has one.
  void Post(Message& message);
  bool TestOne(Message& message);
  // Posts what waits for that and tests all. True when something ended.
  bool Progress();
  void CheckLength(const Message& message, MPI_Status& status);
  // Ends a message of a failed team. `may_call`: MPI may be called now.
  void Drop(Message& message, bool may_call);
  void Observe(Message& message, bool last_look);
  void EnsureMover();
  void Move();

  const Api& api() const { return team_->api(); }
  bool Enter(Gate& gate);

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
  ~MessageRequest() override;

  bool Test() override { return messages_->Wait(*message_, sdk::Deadline(sdk::Nanoseconds(0))); }
  bool Wait(sdk::Nanoseconds timeout) override { return messages_->Wait(*message_, sdk::Deadline(timeout)); }

 private:
  const std::shared_ptr<Messages> messages_;
  const std::shared_ptr<Message> message_;
};

}  // namespace dtrun::mpi_plugin
