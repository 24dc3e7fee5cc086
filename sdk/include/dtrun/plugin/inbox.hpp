// dtrun/plugin/inbox.hpp - messages that come before their receive, and receives that wait for their message.
//
// Not part of plugin.hpp. For a transport that takes whatever a peer sends: its threads deliver messages
// here, and receives take them in the order in which both sides started them. A message is copied into the
// caller's memory under a lock, so that memory is left alone once its receive has ended. Owned by a
// communicator. Any thread.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "dtrun/plugin/backend.hpp"
#include "dtrun/plugin/deadline.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  class Inbox {
   public:
    // The communicator.
    class Owner {
     public:
      // The deadline of a receive from `peer` has passed: fails the communicator, unless it has failed.
      virtual void FailLate(int peer) = 0;
      // Throws the failure, if there is one.
      virtual void ThrowIfFailed() = 0;

     protected:
      ~Owner() = default;
    };

    // What a message and its receive have alike: a receive of another size waits in vain.
    struct Label {
      std::uint64_t key = 0;
      std::uint64_t bytes = 0;
    };

    // Destroyed before the Inbox.
    class Receive final : public Request {
     public:
      ~Receive() override {
        try {
          Wait(kNoLimit);
        } catch (const Failure&) {
          // It was dropped without asking how it ended; the communicator knows.
        }
      }
      bool Test() override { return Wait(Nanoseconds(0)); }
      bool Wait(Nanoseconds timeout) override { return inbox_.Wait(*this, timeout); }

     private:
      friend class Inbox;
      Receive(Inbox& inbox, int peer, Label label, void* data, const Deadline& deadline)
          : inbox_(inbox), peer_(peer), label_(label), data_(data), deadline_(deadline) {}

      Inbox& inbox_;
      const int peer_;
      const Label label_;
      void* const data_;
      const Deadline deadline_;
      bool done_ = false;  // with failed_, guarded by the inbox
      bool failed_ = false;
    };

    // Of a communicator of `size` ranks.
    Inbox(Owner& owner, int size) : owner_(owner), peers_(static_cast<std::size_t>(size)) {}

    std::unique_ptr<Receive> Start(int peer, Label label, void* data, const Deadline& deadline) {
      std::unique_ptr<Receive> receive(new Receive(*this, peer, label, data, deadline));
      const std::lock_guard<std::mutex> lock(mutex_);
      Peer& from = peers_[static_cast<std::size_t>(peer)];
      const auto early = std::find_if(from.messages.begin(), from.messages.end(),
                                      [&](const Message& message) { return Same(message.label, label); });
      if (early != from.messages.end()) {
        Give(*receive, early->data);
        from.messages.erase(early);
      } else if (shut_) {
        receive->done_ = receive->failed_ = true;
      } else {
        from.receives.push_back(receive.get());
      }
      return receive;
    }
    // A message of data.size() bytes has come. Messages of one peer: one thread at a time.
    void Deliver(int peer, std::uint64_t key, std::vector<char> data) {
      const Label label{key, data.size()};
      const std::lock_guard<std::mutex> lock(mutex_);
      Peer& from = peers_[static_cast<std::size_t>(peer)];
      const auto receive = std::find_if(from.receives.begin(), from.receives.end(),
                                        [&](const Receive* one) { return Same(one->label_, label); });
      // A receive that is late has timed out, whether or not its rank has looked.
      if (receive == from.receives.end() || (*receive)->deadline_.passed()) {
        from.messages.push_back({label, std::move(data)});
        return;
      }
      Give(**receive, data);
      from.receives.erase(receive);
      changed_.notify_all();
    }
    // Whether a receive waits for a message of `peer`.
    bool Awaits(int peer) const {
      const std::lock_guard<std::mutex> lock(mutex_);
      return !peers_[static_cast<std::size_t>(peer)].receives.empty();
    }
    // Ends all receives, also later ones, unless their message is here already. REQUIRES that the
    // communicator has failed, or that there are none.
    void Shut() {
      const std::lock_guard<std::mutex> lock(mutex_);
      shut_ = true;
      for (Peer& peer : peers_) {
        for (Receive* const receive : peer.receives) receive->done_ = receive->failed_ = true;
        peer.receives.clear();
      }
      changed_.notify_all();
    }

   private:
    struct Message {
      Label label;
      std::vector<char> data;
    };
    struct Peer {
      std::list<Message> messages;
      std::list<Receive*> receives;
    };

    static bool Same(const Label& a, const Label& b) { return a.key == b.key && a.bytes == b.bytes; }
    static void Give(Receive& receive, const std::vector<char>& data) {
      std::copy(data.begin(), data.end(), static_cast<char*>(receive.data_));
      receive.done_ = true;
    }
    bool Wait(Receive& receive, Nanoseconds timeout) {
      const Deadline patience(timeout);
      std::unique_lock<std::mutex> lock(mutex_);
      while (!receive.done_) {
        if (receive.deadline_.passed()) {
          lock.unlock();
          owner_.FailLate(receive.peer_);
          lock.lock();
          changed_.wait(lock, [&] { return receive.done_; });  // who failed first calls Shut
        } else if (patience.passed()) {
          return false;
        } else {
          changed_.wait_until(lock, std::min(patience.Soon(std::chrono::hours(1)), receive.deadline_.at()));
        }
      }
      const bool failed = receive.failed_;
      lock.unlock();
      if (failed) owner_.ThrowIfFailed();
      return true;
    }

    Owner& owner_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool shut_ = false;
    std::vector<Peer> peers_;
  };

}  // namespace v1
}  // namespace dtrun::sdk
