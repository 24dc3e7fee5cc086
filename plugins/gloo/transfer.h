// A piece of memory that is exchanged with one peer, and the requests of sends and receives.
//
// A transfer lives shorter than its Mesh. Used by one thread at a time, except that the mesh may
// interrupt it from any thread. Once the destructor has returned Gloo touches the memory
// no more, whatever became of the exchange.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "dtrun/plugin.hpp"
#include "mesh.h"
#include "timer.h"

namespace dtrun::gloo_plugin {

// Gloo has no "for ever"; see timer.h for who ends a wait.
inline constexpr std::chrono::milliseconds kTenYears = std::chrono::hours(24 * 3650);

class Transfer {
 public:
  // `peer` may be DTRUN_ANY_SOURCE for one that only receives. Throws when the communicator has
  // failed, as every method does.
  Transfer(Mesh& mesh, int peer, const void* memory, std::size_t bytes);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Start the exchange of bytes [offset, offset + bytes) and return at once. Exchanges of
  // one slot with one peer match in order.
  void Send(std::uint64_t slot, std::size_t offset, std::size_t bytes);
  void Recv(std::uint64_t slot, std::size_t offset, std::size_t bytes);

  // Wait for one exchange; those of one slot finish in order. False: interrupted.
  bool WaitSend(Operation& operation);
  bool WaitRecv(Operation& operation);
  // Whom the last receive came from.
  int source() const { return source_; }
  // Wait for all that were started.
  void FinishSends(Operation& operation);
  void FinishRecvs(Operation& operation);

  // Ends the wait under way, or the next one. Any thread.
  void Interrupt();

 private:
  template <class Call>
  auto Guarded(Call&& call);

  Mesh& mesh_;
  const int peer_;
  int source_ = -1;
  std::unique_ptr<::gloo::transport::UnboundBuffer> buffer_;
  std::size_t sends_ = 0;  // started and not waited for
  std::size_t recvs_ = 0;
};

// While it lives, a write of this thread to a closed socket raises no SIGPIPE; Gloo writes to sockets that may
// be closed.
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

// A send or a receive under way: Gloo has it from the start.
//
// Made by the communicator, owned by core. All methods: any thread; one thread at a time
// waits inside Gloo, the others wait for that one.
class PointToPointRequest final : public sdk::Request {
 public:
  // Starts it. `op` is a DTRUN_SEND or DTRUN_RECV.
  PointToPointRequest(Mesh& mesh, const dtrun_op& op);
  ~PointToPointRequest() override;

  bool Test() override { return Wait(sdk::Nanoseconds(0)); }
  bool Wait(sdk::Nanoseconds timeout) override;

 private:
  bool WaitForTransfer();
  void Expire();
  bool LookForCompletion();

  Mesh& mesh_;
  const bool sending_;
  std::int32_t* const source_;  // the caller's; null when it does not ask
  Operation operation_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool waiting_ = false;  // a thread is inside Gloo
  bool done_ = false;
  std::optional<sdk::Failure> failure_;

  Transfer transfer_;
  std::optional<TimerEntry> timeout_;
};

}  // namespace dtrun::gloo_plugin
