// links.h - messages over the connections of a communicator, and how it fails.
//
// As simple as the rules allow: a message is copied when it is sent and when it is received. Two threads for
// each peer, one that sends and one that receives, so that a message waits for no other rank's.
#pragma once

#include <thread>

#include "dtrun/plugin/block_signals.hpp"
#include "dtrun/plugin/first_failure.hpp"
#include "dtrun/plugin/inbox.hpp"
#include "sockets.h"

namespace tcp {

class Links final : private sdk::Inbox::Owner {
 public:
  // Connects all ranks. Ends within params.timeout. Delegates first, so that the destructor runs when a
  // thread cannot be started: those that run are joined.
  Links(const sdk::Host& host, const sdk::CommParams& params) : Links(params, host) {
    const sdk::BlockSignals block;  // the threads take none
    auto sockets = ConnectAll(members_, params.host_count == 1 ? "127.0.0.1" : params.address,
                              sdk::Deadline(params.timeout));
    for (int rank = 0; rank < params.size; ++rank) {
      peers_[rank].socket = std::move(sockets[rank]);
      if (rank == params.rank) continue;
      peers_[rank].sender = std::thread([this, rank] { SendAll(rank, peers_[rank]); });
      peers_[rank].receiver = std::thread([this, rank] { ReceiveAll(rank, peers_[rank]); });
    }
  }
  // REQUIRES that every receive was destroyed. Hands over what was sent, until it moves no more for 10 s.
  ~Links() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (std::uint64_t before = ~std::uint64_t{0}; std::exchange(before, moved_) != moved_;)
      changed_.wait_for(lock, std::chrono::seconds(10), [&] { return shut_ || unsent_ == 0; });
    lock.unlock();
    // Before the connections end, so that no rank takes that for a failure.
    Quietly([&] { members_.Leave(); });
    Shut();
    for (Peer& peer : peers_) {
      if (peer.sender.joinable()) peer.sender.join();
      if (peer.receiver.joinable()) peer.receiver.join();
    }
  }

  const sdk::Membership& members() const { return members_; }
  // Throws when the communicator has failed; core hears first who is to blame.
  void ThrowIfFailed() override {
    if (failure_ && failure_->code() == DTRUN_REMOTE_FAILURE && !reported_.exchange(true)) {
      sdk::Health(host_).ReportPeer(members_.kv(), failure_->peer(), failure_->what());
    }
    failure_.ThrowIfSet();
  }
  // Ends every receive and tells the other ranks. Only the first failure counts.
  void Fail(const sdk::Failure& failure) {
    if (!failure_.Set(failure)) return;
    Quietly([&] { members_.PublishFailure(failure); });  // before the connections end, so that others find it
    Shut();
  }

  // The memory is the caller's again at once. Throws when the communicator has failed.
  void Send(int peer, sdk::Inbox::Label label, const void* data) {
    ThrowIfFailed();
    std::vector<char> message(sizeof label + label.bytes);
    std::memcpy(message.data(), &label, sizeof label);
    if (label.bytes > 0) std::memcpy(message.data() + sizeof label, data, label.bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    peers_[peer].sends.push_back(std::move(message));
    ++unsent_;
    changed_.notify_all();
  }
  std::unique_ptr<sdk::Inbox::Receive> Receive(int peer, sdk::Inbox::Label label, void* data,
                                               const sdk::Deadline& deadline) {
    auto receive = inbox_.Start(peer, label, data, deadline);
    if (peers_[peer].gone && inbox_.Awaits(peer)) Lost(peer, true);
    return receive;
  }

 private:
  struct Peer {
    Socket socket;
    std::list<std::vector<char>> sends;  // with labels; the first one is under way
    std::atomic<bool> gone{false};
    std::thread sender, receiver;
  };

  Links(const sdk::CommParams& params, const sdk::Host& host)
      : host_(host), members_(params), inbox_(*this, params.size), peers_(params.size) {}
  // The store may be gone, and the job with it: nothing can be done about that here.
  template <class Body>
  static void Quietly(Body&& body) {
    try {
      body();
    } catch (const sdk::Failure&) {
    }
  }
  void FailLate(int peer) override {
    Fail(sdk::Failure(DTRUN_TIMEOUT, "timed out waiting for " + sdk::RanksText({peer}), peer));
  }
  void SendAll(int rank, Peer& peer) {
    const sdk::ThreadScope scope(host_, "tcp-send");
    for (std::unique_lock<std::mutex> lock(mutex_);; changed_.notify_all()) {
      changed_.wait(lock, [&] { return shut_ || !peer.sends.empty(); });
      if (shut_) return;
      const std::vector<char>& message = peer.sends.front();
      lock.unlock();
      if (peer.gone || !peer.socket.Send(message.data(), message.size(), &moved_)) return Lost(rank, true);
      lock.lock();
      peer.sends.pop_front();
      --unsent_;
    }
  }
  void ReceiveAll(int rank, Peer& peer) {
    const sdk::ThreadScope scope(host_, "tcp-receive");
    for (sdk::Inbox::Label label; peer.socket.Recv(&label, sizeof label);) {
      std::vector<char> data(label.bytes);
      if (!peer.socket.Recv(data.data(), data.size())) break;
      inbox_.Deliver(rank, label.key, std::move(data));
    }
    peer.gone = true;
    Lost(rank, inbox_.Awaits(rank));
  }
  // A connection has ended: a failure, unless its rank has left and is not needed.
  void Lost(int rank, bool needed) {
    if (shut_) return;
    std::optional<sdk::Failure> why;
    bool left = false;
    Quietly([&] { why = members_.FailureOfAnother(); });
    if (!why) Quietly([&] { left = members_.Left(rank).has_value(); });
    if (left && !needed) return;
    const sdk::Failure ended(DTRUN_REMOTE_FAILURE, "a connection has ended: " + sdk::RanksText({rank}), rank);
    Fail(why ? *why : left ? members_.LeftFailure(rank) : ended);
  }
  void Shut() {
    const std::lock_guard<std::mutex> lock(mutex_);
    shut_ = true;
    for (const Peer& peer : peers_) ::shutdown(peer.socket.fd, SHUT_RDWR);
    inbox_.Shut();
    changed_.notify_all();
  }

  const sdk::Host host_;
  const sdk::Membership members_;
  sdk::FirstFailure failure_;
  std::atomic<bool> reported_{false};
  sdk::Inbox inbox_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t unsent_ = 0;
  std::atomic<std::uint64_t> moved_{0};  // pieces of messages
  std::atomic<bool> shut_{false};  // written under mutex_
  std::vector<Peer> peers_;
};

}  // namespace tcp
