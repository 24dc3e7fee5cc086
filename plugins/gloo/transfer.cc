#include "transfer.h"

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <exception>
#include <vector>

namespace dtrun::gloo_plugin {

Transfer::Transfer(Mesh& mesh, int peer, const void* memory, std::size_t bytes) : mesh_(mesh), peer_(peer) {
  buffer_ = mesh.context()->createUnboundBuffer(const_cast<void*>(memory), bytes);
  mesh.Register(this);
}

Transfer::~Transfer() { mesh_.Unregister(this); }

// What Gloo throws is the end of the communicator.
template <class Call>
auto Transfer::Guarded(Call&& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    if (peer_ == DTRUN_ANY_SOURCE) {
      mesh_.FailSomebodyLost(error.what());
    } else {
      mesh_.FailLost(peer_, error.what());
    }
    mesh_.ThrowCause();
  }
}

void Transfer::Send(std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  mesh_.ThrowIfFailed();
  Guarded([&] { buffer_->send(peer_, slot, offset, bytes); });
  ++sends_;
}

void Transfer::Recv(std::uint64_t slot, std::size_t offset, std::size_t bytes) {
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

bool Transfer::WaitSend(Operation& operation) {
  operation.waiting_for.store(peer_, std::memory_order_relaxed);
  const bool done = Guarded([&] { return buffer_->waitSend(nullptr, kTenYears); });
  if (!done) mesh_.ThrowIfFailed();
  if (done) --sends_;
  return done;
}

bool Transfer::WaitRecv(Operation& operation) {
  operation.waiting_for.store(peer_ == DTRUN_ANY_SOURCE ? Operation::kAnyone : peer_,
                              std::memory_order_relaxed);
  const bool done = Guarded([&] { return buffer_->waitRecv(&source_, kTenYears); });
  if (!done) mesh_.ThrowIfFailed();
  if (done) --recvs_;
  return done;
}

void Transfer::FinishSends(Operation& operation) {
  while (sends_ > 0) WaitSend(operation);
}

void Transfer::FinishRecvs(Operation& operation) {
  while (recvs_ > 0) WaitRecv(operation);
}

void Transfer::Interrupt() {
  buffer_->abortWaitRecv();
  buffer_->abortWaitSend();
}

}  // namespace dtrun::gloo_plugin
