#include "core/comm/shm/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/thread.h"
#include "core/comm/operation.h"
#include "dtrun/kernels.hpp"
#include "dtrun/plugin/names.hpp"

namespace dtrun::shm {

using sdk::Failure;

class MessageRequest final : public sdk::Request {
 public:
  MessageRequest(Messages& messages, const dtrun_op& op) : messages_(messages) {
    message_.op = op;
    message_.bytes = op.count * kernels::ElementBytes(op.dtype);
    message_.deadline = Deadline(op.timeout_ns);
    message_.deadline.Start();
  }
  ~MessageRequest() override { messages_.Release(message_); }
  bool Test() override { return messages_.Test(message_); }
  bool Wait(sdk::Nanoseconds timeout) override { return messages_.Wait(message_, timeout); }

  Messages::Message& message() { return message_; }

 private:
  Messages& messages_;
  Messages::Message message_;
};

Messages::Messages(Group& group)
    : group_(group),
      sends_(static_cast<std::size_t>(group.size())),
      incoming_(static_cast<std::size_t>(group.size())) {}

Messages::~Messages() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (background_.joinable()) background_.join();
}

std::unique_ptr<sdk::Request> Messages::Start(const dtrun_op& op) {
  auto request = std::make_unique<MessageRequest>(*this, op);
  Message& message = request->message();
  const std::lock_guard lock(mutex_);
  group_.ThrowIfFailed();
  ++pending_;
  if (op.kind == DTRUN_SEND) {
    sends_[static_cast<std::size_t>(op.peer)].push_back(&message);
  } else {
    receives_.push_back(&message);
    const auto unexpected = std::find_if(unexpected_.begin(), unexpected_.end(), [&](const Unexpected& one) {
      return Wants(message, one.from, one.header.tag);
    });
    if (unexpected != unexpected_.end()) {
      Incoming& incoming = incoming_[static_cast<std::size_t>(unexpected->from)];
      Take(message, incoming.unexpected == &*unexpected ? &incoming : nullptr, *unexpected);
    }
  }
  Progress();
  if ((op.flags & DTRUN_OP_BLOCKING) == 0 && !message.done) {
    if (!background_.joinable()) {
      background_ = StartThread("shm-messages", [this] { RunInBackground(); });
    }
    changed_.notify_all();
  }
  return request;
}

Messages::Ring& Messages::RingOf(int from, int to) const {
  return *reinterpret_cast<Ring*>(group_.at(group_.layout().channel_at(from, to)));
}

std::size_t Messages::Push(Ring& ring, const std::byte* from, std::size_t bytes) {
  const std::uint64_t written = ring.written.load(std::memory_order_relaxed);
  const std::size_t room = Capacity() - (written - ring.read.load(std::memory_order_acquire));
  const std::size_t size = std::min(room, bytes);
  const std::size_t at = written % Capacity();
  const std::size_t first = std::min(size, Capacity() - at);
  if (first > 0) std::memcpy(ring.data + at, from, first);
  if (size > first) std::memcpy(ring.data, from + first, size - first);
  ring.written.store(written + size, std::memory_order_release);
  return size;
}

std::size_t Messages::Pull(Ring& ring, std::byte* to, std::size_t bytes) {
  const std::uint64_t read = ring.read.load(std::memory_order_relaxed);
  const std::size_t there = ring.written.load(std::memory_order_acquire) - read;
  const std::size_t size = std::min(there, bytes);
  const std::size_t at = read % Capacity();
  const std::size_t first = std::min(size, Capacity() - at);
  if (first > 0) std::memcpy(to, ring.data + at, first);
  if (size > first) std::memcpy(to + first, ring.data, size - first);
  ring.read.store(read + size, std::memory_order_release);
  return size;
}

void Messages::WakeUp(int rank) {
  Counter& wakeup = group_.rank_of(rank).wakeup;
  wakeup.value.fetch_add(1);
  if (wakeup.sleepers.load() == 0) return;
  wakeup.sleepers.store(0);
  WakeAll(wakeup.value);
}

bool Messages::Progress() {
  bool moved = false;
  for (int peer = 0; peer < group_.size(); ++peer) {
    if (peer == group_.rank()) continue;
    const bool sent = ProgressSends(peer);
    const bool came = ProgressIncoming(peer);
    if (sent || came) WakeUp(peer);
    moved = moved || sent || came;
  }
  return moved;
}

bool Messages::ProgressSends(int peer) {
  std::deque<Message*>& queue = sends_[static_cast<std::size_t>(peer)];
  if (queue.empty()) return false;
  Ring& ring = RingOf(group_.rank(), peer);
  bool moved = false;
  while (!queue.empty()) {
    Message& message = *queue.front();
    if (message.moved == 0) {
      const std::uint64_t used =
          ring.written.load(std::memory_order_relaxed) - ring.read.load(std::memory_order_acquire);
      if (Capacity() - used < sizeof(Header)) return moved;
      const Header header{message.bytes, message.op.count, message.op.tag, message.op.dtype};
      message.moved = Push(ring, reinterpret_cast<const std::byte*>(&header), sizeof header);
      moved = true;
    }
    const std::size_t at = message.moved - sizeof(Header);
    const std::size_t size =
        Push(ring, static_cast<const std::byte*>(message.op.send) + at, message.bytes - at);
    message.moved += size;
    moved = moved || size > 0;
    if (message.moved < message.bytes + sizeof(Header)) return moved;
    queue.pop_front();
    Finish(message, -1);
  }
  return moved;
}

bool Messages::ProgressIncoming(int peer) {
  Incoming& incoming = incoming_[static_cast<std::size_t>(peer)];
  Ring& ring = RingOf(peer, group_.rank());
  bool moved = false;
  for (;;) {
    if (!incoming.open) {
      const std::uint64_t there =
          ring.written.load(std::memory_order_acquire) - ring.read.load(std::memory_order_relaxed);
      if (there < sizeof(Header)) return moved;
      incoming = {};
      Pull(ring, reinterpret_cast<std::byte*>(&incoming.header), sizeof(Header));
      incoming.open = true;
      moved = true;
    }
    if (incoming.into == nullptr && incoming.unexpected == nullptr && !Match(peer, incoming)) return moved;
    std::byte* const to = incoming.into != nullptr ? static_cast<std::byte*>(incoming.into->op.recv)
                                                   : incoming.unexpected->data.get();
    const std::size_t size = Pull(ring, to + incoming.moved, incoming.header.bytes - incoming.moved);
    incoming.moved += size;
    moved = moved || size > 0;
    if (incoming.moved < incoming.header.bytes) return moved;
    incoming.open = false;
    if (incoming.into != nullptr) Finish(*incoming.into, peer);
    incoming.into = nullptr;
    incoming.unexpected = nullptr;
  }
}

bool Messages::Wants(const Message& receive, int from, std::uint32_t tag) const {
  return receive.op.tag == tag && (receive.op.peer == from || receive.op.peer == DTRUN_ANY_SOURCE);
}

// Finds the receive for the message. Without one, the message moves to the unexpected queue only if another
// receive may be waiting behind it; otherwise it stays in the ring and blocks its sender.
bool Messages::Match(int peer, Incoming& incoming) {
  const auto receive = std::find_if(receives_.begin(), receives_.end(), [&](const Message* one) {
    return Wants(*one, peer, incoming.header.tag);
  });
  if (receive != receives_.end()) {
    CheckMatch(incoming.header, peer, **receive);
    incoming.into = *receive;
    receives_.erase(receive);
    return true;
  }
  const bool in_the_way = std::any_of(receives_.begin(), receives_.end(), [&](const Message* one) {
    return one->op.peer == peer || one->op.peer == DTRUN_ANY_SOURCE;
  });
  if (!in_the_way) return false;
  unexpected_.push_back(
      {peer, incoming.header,
       std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(1, incoming.header.bytes))});
  incoming.unexpected = &unexpected_.back();
  return true;
}

void Messages::CheckMatch(const Header& header, int from, const Message& message) {
  if (header.count == message.op.count && header.dtype == message.op.dtype) return;
  group_.Fail(Failure(
      DTRUN_MISMATCH,
      fmt::format("message with tag {} on '{}' differs: rank {} sends {} x {}, rank {} receives {} x {}",
                  header.tag, group_.name(), from, sdk::TypeName(header.dtype), header.count, group_.rank(),
                  sdk::TypeName(message.op.dtype), message.op.count),
      from));
}

// Gives a receive what arrived unexpectedly; the rest, still arriving, goes to it directly.
void Messages::Take(Message& message, Incoming* incoming, Unexpected& unexpected) {
  CheckMatch(unexpected.header, unexpected.from, message);
  receives_.remove(&message);
  const std::size_t there = incoming == nullptr ? unexpected.header.bytes : incoming->moved;
  if (there > 0) std::memcpy(message.op.recv, unexpected.data.get(), there);
  if (incoming == nullptr) {
    Finish(message, unexpected.from);
  } else {
    incoming->into = &message;
    incoming->unexpected = nullptr;
  }
  ForgetUnexpected(unexpected);
}

void Messages::ForgetUnexpected(const Unexpected& unexpected) {
  unexpected_.remove_if([&](const Unexpected& one) { return &one == &unexpected; });
}

void Messages::Finish(Message& message, int from) {
  if (message.op.kind == DTRUN_RECV && message.op.source != nullptr) *message.op.source = from;
  --pending_;
  message.done.store(true, std::memory_order_release);
  changed_.notify_all();
}

// Throws if the message can never complete.
void Messages::CheckAlive(Message& message) {
  group_.ThrowIfFailed();
  Running running{&message.op, message.deadline};
  // The peer it waits for: one rank, or all others.
  const bool anyone = message.op.kind == DTRUN_RECV && message.op.peer == DTRUN_ANY_SOURCE;
  const int peer = !anyone ? message.op.peer : group_.rank() == 0 ? group_.size() - 1 : 0;
  bool gone = true;
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (rank != group_.rank() && (anyone || rank == peer)) gone = gone && group_.Gone(rank);
  }
  if (gone) {
    // Messages sent before they left are still there; check once more, now that they are surely gone.
    Progress();
    if (!message.done) group_.FailGone(peer, running);
  }
  if (message.deadline.Passed()) group_.FailTimeout(peer, running);
}

bool Messages::Test(Message& message) {
  if (message.done.load(std::memory_order_acquire)) return true;
  const std::lock_guard lock(mutex_);
  Progress();
  if (message.done) return true;
  CheckAlive(message);
  return message.done;
}

bool Messages::Wait(Message& message, std::chrono::nanoseconds timeout) {
  if (message.done.load(std::memory_order_acquire)) return true;
  Deadline patience(timeout.count());
  patience.Start();
  Counter& wakeup = group_.rank_of(group_.rank()).wakeup;
  std::unique_lock lock(mutex_);
  ++waiters_;
  const auto leave = [&](bool result) {
    --waiters_;
    if (pending_ > 0) changed_.notify_all();
    return result;
  };
  try {
    for (int round = 0;; ++round) {
      const bool eager = round < group_.patience().spins / 10 + group_.patience().yields;
      if (!eager) wakeup.sleepers.store(1);
      const std::uint32_t seen = wakeup.value.load();
      const bool moved = Progress();
      if (message.done) return leave(true);
      if (patience.Passed()) {
        CheckAlive(message);
        return leave(message.done);
      }
      if (moved) {
        round = 0;
        continue;
      }
      lock.unlock();
      if (eager) {
        if (round < group_.patience().spins / 10) {
          for (int i = 0; i < 10; ++i) Pause();
        } else {
          sched_yield();
        }
      } else {
        Sleep(wakeup.value, seen, message.deadline.Left(patience.Left(kLookAround)));
      }
      lock.lock();
      if (!eager && !message.done) CheckAlive(message);
    }
  } catch (...) {
    leave(false);
    throw;
  }
}

void Messages::Release(Message& message) {
  try {
    Wait(message, sdk::kNoLimit);
  } catch (const Failure&) {
    // The program dropped the request, so it does not ask how it ended; the communicator keeps the failure.
  }
  const std::lock_guard lock(mutex_);
  if (message.done) return;
  --pending_;
  receives_.remove(&message);
  for (std::deque<Message*>& queue : sends_) std::erase(queue, &message);
  for (Incoming& incoming : incoming_) {
    if (incoming.into == &message) incoming.into = nullptr;
  }
}

void Messages::RunInBackground() {
  Counter& wakeup = group_.rank_of(group_.rank()).wakeup;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || (pending_ > 0 && waiters_ == 0); });
    if (stop_) return;
    wakeup.sleepers.store(1);
    const std::uint32_t seen = wakeup.value.load();
    try {
      if (Progress()) continue;
    } catch (const Failure&) {
      // Recorded in the group, where every waiter finds it.
    }
    lock.unlock();
    Sleep(wakeup.value, seen, kLookAround);
    lock.lock();
  }
}

}  // namespace dtrun::shm
