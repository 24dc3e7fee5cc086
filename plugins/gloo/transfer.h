// A piece of memory that is exchanged with one peer, and the messages of collectives.
//
// A transfer lives shorter than its Mesh. Used by one thread at a time, except that the mesh may
// interrupt it from any thread. Once the destructor has returned Gloo touches the memory
// no more, whatever became of the exchange.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dtrun/algorithms.hpp"
#include "dtrun/plugin.hpp"
#include "dtrun/plugin/signature.hpp"
#include "mesh.h"

namespace dtrun::gloo_plugin {

// Gloo has no "for ever"; see timer.h for who ends a wait.
inline constexpr std::chrono::milliseconds kTenYears = std::chrono::hours(24 * 3650);

inline std::uint64_t Folded(std::uint64_t hash, int bits) {
  return (hash ^ hash >> 32) & ((std::uint64_t{1} << bits) - 1);
}

inline std::uint64_t DigestOf(std::uint64_t number, int bits) {
  sdk::Fnv1a digest;
  digest.Add(number);
  return Folded(digest.value(), bits);
}

// The slot of a message of `bytes` in the collective that has `slot`: messages of ranks that disagree on the
// size never match.
inline std::uint64_t SlotOf(std::uint64_t slot, std::size_t bytes) { return slot ^ DigestOf(bytes, 24) << 4; }

// The slot of a DTRUN_SEND or DTRUN_RECV: 32 bits of tag and 28 of digest. Messages of one slot match in the
// order they were sent; a sender does not know whether the receiver names it, so the slot cannot count them.
inline std::uint64_t MessageSlot(const dtrun_op& op) {
  const std::uint64_t what = op.count << 8 | static_cast<std::uint64_t>(op.dtype);
  return MakeSlot(SlotUse::kPointToPoint, std::uint64_t{op.tag} << 28 | DigestOf(what, 28));
}

class Transfer {
 public:
  // `peer` may be DTRUN_ANY_SOURCE for one that only receives. Throws when the communicator has
  // failed, as every method does.
  Transfer(Mesh& mesh, int peer, const void* memory, std::size_t bytes) : mesh_(mesh), peer_(peer) {
    buffer_ = mesh.context()->createUnboundBuffer(const_cast<void*>(memory), bytes);
    mesh.Register(this);
  }
  ~Transfer() { mesh_.Unregister(this); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Start the exchange of bytes [offset, offset + bytes) and return at once. Exchanges of
  // one slot with one peer match in order.
  void Send(std::uint64_t slot, std::size_t offset, std::size_t bytes) {
    mesh_.ThrowIfFailed();
    Guarded([&] { buffer_->send(peer_, slot, offset, bytes); });
    ++sends_;
  }

  void Recv(std::uint64_t slot, std::size_t offset, std::size_t bytes) {
    mesh_.ThrowIfFailed();
    Guarded([&] {
      if (peer_ != DTRUN_ANY_SOURCE) return buffer_->recv(peer_, slot, offset, bytes);
      std::vector<int> others;
      for (int rank = 0; rank < mesh_.size(); ++rank) {
        if (rank != mesh_.rank()) others.push_back(rank);
      }
      buffer_->recv(others, slot, offset, bytes);
    });
    ++recvs_;
  }

  // Wait for one exchange; those of one slot finish in order. False: interrupted.
  bool WaitSend(Operation& operation) {
    operation.waiting_for.store(peer_, std::memory_order_relaxed);
    const bool done = Guarded([&] { return buffer_->waitSend(nullptr, kTenYears); });
    if (!done) mesh_.ThrowIfFailed();
    if (done) --sends_;
    return done;
  }
  bool WaitRecv(Operation& operation) {
    operation.waiting_for.store(peer_ == DTRUN_ANY_SOURCE ? Operation::kAnyone : peer_,
                                std::memory_order_relaxed);
    const bool done = Guarded([&] { return buffer_->waitRecv(&source_, kTenYears); });
    if (!done) mesh_.ThrowIfFailed();
    if (done) --recvs_;
    return done;
  }
  // Whom the last receive came from.
  int source() const { return source_; }
  // Wait for all that were started.
  void FinishSends(Operation& operation) {
    while (sends_ > 0) WaitSend(operation);
  }
  void FinishRecvs(Operation& operation) {
    while (recvs_ > 0) WaitRecv(operation);
  }

  // Ends the wait under way, or the next one. Any thread.
  void Interrupt() {
    buffer_->abortWaitRecv();
    buffer_->abortWaitSend();
  }

 private:
  // What Gloo throws is the end of the communicator.
  template <class Call>
  std::invoke_result_t<Call> Guarded(Call&& call) {
    try {
      return call();
    } catch (const std::exception& error) {
      if (peer_ == DTRUN_ANY_SOURCE) {
        mesh_.FailUnknownLost(error.what());
      } else {
        mesh_.FailLost(peer_, error.what());
      }
      mesh_.ThrowCause();
    }
  }

  Mesh& mesh_;
  const int peer_;
  int source_ = -1;
  std::unique_ptr<::gloo::transport::UnboundBuffer> buffer_;
  std::size_t sends_ = 0;  // started and not waited for
  std::size_t recvs_ = 0;
};

// While it lives, a write of this thread to a closed socket raises no SIGPIPE; Gloo writes to sockets that
// may be closed.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const timespec now{};
    // SIGPIPE is directed at the writing thread, so what is pending now is ours to take.
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_;
};

// The messages of one collective after another, for the algorithms of the SDK. Owned by a communicator, used
// by the thread that runs a collective.
class MeshMessenger final : public algorithms::Messenger {
 public:
  explicit MeshMessenger(Mesh& mesh) : mesh_(mesh) {}

  // Later messages belong to `operation`, which is `op`.
  void Begin(Operation& operation, const dtrun_op& op) {
    operation_ = &operation;
    const std::uint64_t digest = Folded(sdk::SignatureOf(op, size()).Digest(), 24);
    slot_ = MakeSlot(SlotUse::kCollective, (op.sequence & 0xffffffffu) << 28 | digest << 4);
  }
  // The slot of the collective, which no other one under way has; its lowest four bits are free.
  std::uint64_t slot() const { return slot_; }

  int rank() const override { return mesh_.rank(); }
  int size() const override { return mesh_.size(); }
  Message Send(int peer, const void* data, std::size_t bytes) override {
    auto transfer = std::make_unique<Transfer>(mesh_, peer, data, bytes);
    transfer->Send(SlotOf(slot_, bytes), 0, bytes);
    return Keep(std::move(transfer));
  }
  Message Recv(int peer, void* data, std::size_t bytes) override {
    auto transfer = std::make_unique<Transfer>(mesh_, peer, data, bytes);
    transfer->Recv(SlotOf(slot_, bytes), 0, bytes);
    return Keep(std::move(transfer));
  }
  void Wait(Message message) override {
    auto* const transfer = static_cast<Transfer*>(message);
    transfer->FinishSends(*operation_);
    transfer->FinishRecvs(*operation_);
    transfers_.erase(message);
  }
  void Cancel() noexcept override { transfers_.clear(); }

 private:
  Message Keep(std::unique_ptr<Transfer> transfer) {
    const Message message = transfer.get();
    transfers_.emplace(message, std::move(transfer));
    return message;
  }

  Mesh& mesh_;
  Operation* operation_ = nullptr;
  std::uint64_t slot_ = 0;
  std::unordered_map<Message, std::unique_ptr<Transfer>> transfers_;  // under way
};

}  // namespace dtrun::gloo_plugin
