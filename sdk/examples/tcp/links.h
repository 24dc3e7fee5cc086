// links.h - messages over the connections of a communicator, and how it fails.
//
// As simple as the rules allow: a message is copied when it is sent and when it is received. Two threads for
// each peer, one that sends and one that receives, so that a message waits for no other rank's.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "dtrun/plugin/block_signals.hpp"
#include "dtrun/plugin/first_failure.hpp"
#include "sockets.h"

namespace tcp {

// Goes before each message. A receive takes the first one with an equal header, so one of another size never.
struct Header {
  std::uint64_t key, bytes;
  bool operator==(const Header& other) const { return key == other.key && bytes == other.bytes; }
};

// A receive that was started; lives until it is done. Guarded by the Links.
struct Receive {
  int peer;
  Header header;
  void* data;
  sdk::Deadline deadline;
  bool done = false;  // the memory is the caller's again
  bool failed = false;
};

class Links {
 public:
  // Connects all ranks. Ends within params.timeout.
  Links(const sdk::Host& host, const sdk::CommParams& params)
      : host_(host), members_(params), peers_(static_cast<std::size_t>(params.size)) {
    const sdk::BlockSignals block;  // the threads take none
    auto sockets = ConnectAll(members_, params.host_count == 1 ? "127.0.0.1" : params.address,
                              sdk::Deadline(params.timeout));
    for (std::size_t rank = 0; rank < sockets.size(); ++rank) {
      if (sockets[rank].fd < 0) continue;  // this one
      Peer& peer = peers_[rank];
      peer.rank = static_cast<int>(rank);
      peer.socket = std::move(sockets[rank]);
      peer.sender = std::thread([&] { SendAll(peer); });
      peer.receiver = std::thread([&] { ReceiveAll(peer); });
    }
  }
  // REQUIRES that every receive is done. Gives what was sent a moment to leave.
  ~Links() {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto idle = [](const Peer& peer) { return peer.sends.empty(); };
    changed_.wait_for(lock, std::chrono::seconds(5),
                      [&] { return shut_ || std::all_of(peers_.begin(), peers_.end(), idle); });
    lock.unlock();
    Quietly(
        [&] { members_.Leave(); });  // before the connections end, so that nobody takes that for a failure
    Shut();
    for (Peer& peer : peers_) {
      if (peer.sender.joinable()) peer.sender.join();
      if (peer.receiver.joinable()) peer.receiver.join();
    }
  }

  // Throws when the communicator has failed; core hears first who is to blame.
  void ThrowIfFailed() {
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
  void FailTimeout(const std::string& what, int peer) {
    Fail(sdk::Failure(DTRUN_TIMEOUT, "timed out " + what + "; look at what the other ranks are doing", peer));
  }

  // The memory is the caller's again at once. Throws when the communicator has failed.
  void Send(int rank, Header header, const void* data) {
    std::vector<char> message(sizeof header + header.bytes);
    std::memcpy(message.data(), &header, sizeof header);
    if (header.bytes > 0) std::memcpy(message.data() + sizeof header, data, header.bytes);
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    ThrowIfFailed();
    const std::lock_guard<std::mutex> lock(mutex_);
    peer.sends.push_back(std::move(message));
    changed_.notify_all();
  }
  void Start(Receive& receive) {
    Peer& peer = peers_[static_cast<std::size_t>(receive.peer)];
    std::unique_lock<std::mutex> lock(mutex_);
    peer.receives.push_back(&receive);
    Match(peer);
    if (shut_) EndReceives(peer);
    const bool lost = peer.gone && !receive.done;
    lock.unlock();
    if (lost) Lost(peer, true);
  }
  // False when it still runs after `timeout`. Throws when the communicator has failed.
  bool Wait(const Receive& receive, sdk::Nanoseconds timeout) {
    const sdk::Deadline patience(timeout);
    for (std::unique_lock<std::mutex> lock(mutex_); !receive.done;) {
      if (patience.passed() && !receive.deadline.passed()) return false;
      if (receive.deadline.passed()) {
        lock.unlock();
        FailTimeout("waiting for " + sdk::RanksText({receive.peer}), receive.peer);
        lock.lock();
        changed_.wait(lock, [&] { return receive.done; });  // another failure may be ahead of this one
      } else {
        changed_.wait_until(lock, std::min(patience.Soon(std::chrono::hours(1)), receive.deadline.at()));
      }
    }
    if (receive.failed) ThrowIfFailed();
    return true;
  }
  void WaitForEnd(const Receive& receive) {
    Quietly([&] { Wait(receive, sdk::kNoLimit); });
  }

 private:
  struct Peer {
    int rank = -1;
    Socket socket;
    std::list<std::vector<char>> sends;                        // with headers; the first one is under way
    std::list<std::pair<Header, std::vector<char>>> messages;  // whose receive has not been started
    std::list<Receive*> receives;
    std::atomic<bool> gone{false};
    std::thread sender, receiver;
  };

  // For what fails only with the store, and with the job, or whose failure later calls report.
  template <class Body>
  static void Quietly(Body&& body) {
    try {
      body();
    } catch (const sdk::Failure&) {
    }
  }
  void SendAll(Peer& peer) {
    const sdk::ThreadScope scope(host_, "tcp-send");
    for (std::unique_lock<std::mutex> lock(mutex_);; changed_.notify_all()) {
      changed_.wait(lock, [&] { return shut_ || !peer.sends.empty(); });
      if (shut_) return;
      const std::vector<char>& message = peer.sends.front();
      lock.unlock();
      const bool sent = !peer.gone && peer.socket.Send(message.data(), message.size());
      if (!sent) return Lost(peer, true);
      lock.lock();
      peer.sends.pop_front();
    }
  }
  void ReceiveAll(Peer& peer) {
    const sdk::ThreadScope scope(host_, "tcp-receive");
    for (Header header; peer.socket.Recv(&header, sizeof header);) {
      std::vector<char> data(header.bytes);
      if (!peer.socket.Recv(data.data(), data.size())) break;
      const std::lock_guard<std::mutex> lock(mutex_);
      peer.messages.emplace_back(header, std::move(data));
      Match(peer);
    }
    std::unique_lock<std::mutex> lock(mutex_);
    peer.gone = true;
    changed_.notify_all();
    const bool needed = !peer.receives.empty();
    lock.unlock();
    Lost(peer, needed);
  }
  // A connection has ended: a failure, unless its rank has left and nobody needs it.
  void Lost(const Peer& peer, bool needed) {
    if (shut_) return;
    std::optional<sdk::Failure> why;
    bool left = false;
    Quietly([&] { why = members_.FailureOfAnother(); });
    if (!why) Quietly([&] { left = members_.Left(peer.rank).has_value(); });
    if (left && !needed) return;
    const std::string text = "the connection with " + sdk::RanksText({peer.rank}) + " has ended";
    if (!why)
      why = left ? members_.LeftFailure(peer.rank) : sdk::Failure(DTRUN_REMOTE_FAILURE, text, peer.rank);
    Fail(*why);
  }
  void Shut() {
    const std::lock_guard<std::mutex> lock(mutex_);
    shut_ = true;
    for (Peer& peer : peers_) {
      ::shutdown(peer.socket.fd, SHUT_RDWR);
      EndReceives(peer);
    }
  }
  // Both REQUIRE mutex_.
  void EndReceives(Peer& peer) {
    for (Receive* const receive : peer.receives) receive->failed = receive->done = true;
    peer.receives.clear();
    changed_.notify_all();
  }
  void Match(Peer& peer) {
    peer.messages.remove_if([&](const auto& message) {
      const auto fits = [&](const Receive* receive) { return receive->header == message.first; };
      const auto found = std::find_if(peer.receives.begin(), peer.receives.end(), fits);
      if (found == peer.receives.end()) return false;
      std::copy(message.second.begin(), message.second.end(), static_cast<char*>((*found)->data));
      (*found)->done = true;
      peer.receives.erase(found);
      changed_.notify_all();
      return true;
    });
  }

  const sdk::Host host_;
  const sdk::Membership members_;
  sdk::FirstFailure failure_;
  std::atomic<bool> reported_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> shut_{false};  // written under mutex_
  std::vector<Peer> peers_;
};

}  // namespace tcp
