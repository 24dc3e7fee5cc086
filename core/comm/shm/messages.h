// Sends and receives over shared memory: a ring of bytes from every rank to every other.
//
// A send is done when its bytes are in the ring, a receive when they are out of it. Messages of one sender
// and tag keep their order. A receive of another tag does not block, because earlier messages move to the
// queue of unexpected messages. Any waiting thread moves the bytes of all messages; a background thread does
// so if none waits. Owned by ShmCommunicator; thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/comm/shm/group.h"

namespace dtrun::shm {

class Messages {
 public:
  explicit Messages(Group& group);
  ~Messages();

  std::unique_ptr<sdk::Request> Start(const dtrun_op& op);

 private:
  friend class MessageRequest;

  // Precedes the bytes of a message.
  struct Header {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
    std::uint32_t tag = 0;
    std::int32_t dtype = 0;
  };
  struct alignas(kLine) Ring {
    std::atomic<std::uint64_t> written;
    alignas(kLine) std::atomic<std::uint64_t> read;
    alignas(kLine) std::byte data[1];
  };
  // A send or receive that was started and not released.
  struct Message {
    dtrun_op op;
    std::size_t bytes = 0;
    std::size_t moved = 0;  // sends: of header and bytes; receives: of bytes
    std::atomic<bool> done{false};
    Deadline deadline{-1};
  };
  // A message that arrived before its receive, perhaps not completely.
  struct Unexpected {
    int from;
    Header header;
    std::unique_ptr<std::byte[]> data;
  };
  // The message that is arriving from one rank.
  struct Incoming {
    bool open = false;  // header read, not all bytes
    Header header;
    std::size_t moved = 0;
    Message* into = nullptr;
    Unexpected* unexpected = nullptr;
  };

  bool Wait(Message& message, std::chrono::nanoseconds timeout);
  bool Test(Message& message);
  void Release(Message& message);

  // All below REQUIRE mutex_. The Progress functions return true if anything moved.
  bool Progress();
  bool ProgressSends(int peer);
  bool ProgressIncoming(int peer);
  bool Match(int peer, Incoming& incoming);
  void CheckMatch(const Header& header, int from, const Message& message);
  void Take(Message& message, Incoming* incoming, Unexpected& unexpected);
  void Finish(Message& message, int from);
  bool Wants(const Message& receive, int from, std::uint32_t tag) const;
  void ForgetUnexpected(const Unexpected& unexpected);

  Ring& RingOf(int from, int to) const;
  std::size_t Capacity() const { return group_.layout().channel_bytes - 2 * kLine; }
  std::size_t Push(Ring& ring, const std::byte* from, std::size_t bytes);
  std::size_t Pull(Ring& ring, std::byte* to, std::size_t bytes);
  void WakeUp(int rank);
  void CheckAlive(Message& message);
  void RunInBackground();

  Group& group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<Message*>> sends_;  // by peer
  std::vector<Incoming> incoming_;           // by peer
  std::list<Message*> receives_;             // posted, not matched
  std::list<Unexpected> unexpected_;
  int pending_ = 0;  // messages not done
  int waiters_ = 0;
  bool stop_ = false;
  std::thread background_;
};

}  // namespace dtrun::shm
