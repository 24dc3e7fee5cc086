// A piece of memory that is exchanged with one peer.
//
// Lives shorter than its Mesh. Used by one thread at a time, except that the mesh may
// interrupt it from any thread. Once the destructor has returned Gloo touches the memory
// no more, whatever became of the exchange.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "mesh.h"

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

}  // namespace dtrun::gloo_plugin
