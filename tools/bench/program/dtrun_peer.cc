#include "tools/bench/program/dtrun_peer.h"

namespace dtrun::bench {
namespace {

// A call of dtrun.h. Success leaves the error object unchanged, so one object, cleared once, serves all
// calls.
template <class F>
void Do(F&& call) {
  static thread_local dtrun_error error = [] {
    dtrun_error clear;
    DTRUN_ERROR_INIT(clear);
    return clear;
  }();
  const dtrun_status status = call(&error);
  if (status == DTRUN_OK) return;
  const std::string text = error.message[0] != '\0' ? error.message : dtrun_status_text(status);
  if (status == DTRUN_UNSUPPORTED) throw Unsupported(text);
  throw std::runtime_error(text);
}

dtrun_status Exchange(dtrun_comm* comm, const Call& call, dtrun_error* error) {
  const int ranks = dtrun_comm_size(comm), rank = dtrun_comm_rank(comm);
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  const std::uint64_t n = call.shape.count;
  const std::int32_t type = call.element.dtype;
  const dtrun_status begun = dtrun_group_begin(comm, error);
  if (begun != DTRUN_OK) return begun;
  const dtrun_status sent = dtrun_send(comm, call.send, n, type, next, 0, nullptr, error);
  const dtrun_status received =
      sent == DTRUN_OK ? dtrun_recv(comm, call.recv, n, type, previous, 0, nullptr, error) : sent;
  dtrun_error end;
  DTRUN_ERROR_INIT(end);
  const dtrun_status ended = dtrun_group_end(comm, nullptr, received == DTRUN_OK ? error : &end);
  return received == DTRUN_OK ? ended : received;
}

}  // namespace

std::string DtrunPeer::description() const {
  return std::string("dtrun ") + dtrun_version() + " over " + dtrun_comm_backend(world_);
}

void DtrunPeer::Run(const Call& call) {
  const std::uint64_t n = call.shape.count;
  const std::int32_t type = call.element.dtype;
  Do([&](dtrun_error* e) -> dtrun_status {
    switch (call.operation) {
      case Operation::kAllreduce:
        return dtrun_allreduce(world_, call.send, call.recv, n, type, DTRUN_SUM, nullptr, e);
      case Operation::kReduce:
        return dtrun_reduce(world_, call.send, call.recv, n, type, DTRUN_SUM, kRoot, nullptr, e);
      case Operation::kBroadcast: return dtrun_broadcast(world_, call.recv, n, type, kRoot, nullptr, e);
      case Operation::kAllgather: return dtrun_allgather(world_, call.send, call.recv, n, type, nullptr, e);
      case Operation::kReduceScatter:
        return dtrun_reduce_scatter(world_, call.send, call.recv, n, type, DTRUN_SUM, nullptr, e);
      case Operation::kAlltoall: return dtrun_alltoall(world_, call.send, call.recv, n, type, nullptr, e);
      case Operation::kBarrier: return dtrun_barrier(world_, nullptr, e);
      case Operation::kSendrecv: return Exchange(world_, call, e);
      case Operation::kCopy: break;
    }
    throw Unsupported("libdtrun has no such operation");
  });
}

void DtrunPeer::Barrier() {
  Do([&](dtrun_error* e) { return dtrun_barrier(world_, nullptr, e); });
}

void* DtrunPeer::Allocate(std::uint64_t bytes) {
  void* memory = nullptr;
  Do([&](dtrun_error* e) { return dtrun_alloc(world_, bytes, &memory, e); });
  return memory;
}

void DtrunPeer::Free(void* memory) { dtrun_free(world_, memory); }

}  // namespace dtrun::bench
