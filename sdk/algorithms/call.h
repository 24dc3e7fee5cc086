// One collective in progress: its messages, its scratch memory, and the reduction.
//
// Lives on the stack of RunCollective; used by its thread only. If a failure unwinds the stack, the
// messages are ended before the scratch memory is freed.
#pragma once

#include <memory>
#include <vector>

#include "dtrun/algorithms.hpp"
#include "dtrun/plugin/op.hpp"

namespace dtrun::algorithms {

using sdk::Part;

class Call {
 public:
  using Message = Messenger::Message;

  explicit Call(Messenger& messenger);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // The rank `distance` places further round the ring; distance >= -size.
  int Neighbour(int distance) const { return (rank_ + distance + size_) % size_; }

  Message Send(int peer, const void* data, std::size_t bytes) { return messenger_.Send(peer, data, bytes); }
  Message Recv(int peer, void* data, std::size_t bytes) { return messenger_.Recv(peer, data, bytes); }
  void Wait(Message message) {
    if (message != nullptr) messenger_.Wait(message);
  }
  // Starts both at once and waits for both.
  void Exchange(int to, const void* out, std::size_t out_bytes, int from, void* in, std::size_t in_bytes);

  // Memory that lives as long as this call, aligned for any element.
  std::byte* Scratch(std::size_t bytes);

  // Marks that every message was waited for.
  void Done() { done_ = true; }

 private:
  Messenger& messenger_;
  const int rank_;
  const int size_;
  bool done_ = false;
  std::vector<ScratchPool::Block> scratch_;
};

// Messages that need not complete before the end of the collective, mostly sends.
class Messages {
 public:
  explicit Messages(Call& call) : call_(call) {}
  void Add(Call::Message message) { messages_.push_back(message); }
  // Waits for all messages in the order in which they were added.
  void Finish();

 private:
  Call& call_;
  std::vector<Call::Message> messages_;
};

}  // namespace dtrun::algorithms
