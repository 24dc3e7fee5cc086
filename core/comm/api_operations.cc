// The C API of sdk/include/dtrun/dtrun.h: every operation is one dtrun_op, built and started.
#include "core/comm/runtime.h"

using dtrun::comm::WithComm;

namespace {

// One operation, from its arguments to the communicator.
class Call {
 public:
  Call(std::int32_t kind, std::int32_t dtype) {
    DTRUN_INIT(op_);
    op_.kind = kind;
    op_.dtype = dtype;
    op_.root = -1;
    op_.peer = -1;
    op_.scale = 1;
  }
  Call& Buffers(const void* send, void* recv, std::uint64_t count = 0) {
    op_.send = send;
    op_.recv = recv;
    op_.count = count;
    return *this;
  }
  Call& SendParts(const std::uint64_t* counts, const std::uint64_t* offsets) {
    op_.send_counts = counts;
    op_.send_offsets = offsets;
    return *this;
  }
  Call& RecvParts(const std::uint64_t* counts, const std::uint64_t* offsets) {
    op_.recv_counts = counts;
    op_.recv_offsets = offsets;
    return *this;
  }
  Call& Reduce(std::int32_t reduce, double scale = 1) {
    op_.reduce = reduce;
    op_.scale = scale;
    return *this;
  }
  Call& Root(std::int32_t root) {
    op_.root = root;
    return *this;
  }
  Call& Peer(std::int32_t peer, std::uint32_t tag, std::int32_t* source = nullptr) {
    op_.peer = peer;
    op_.tag = tag;
    op_.source = source;
    return *this;
  }
  dtrun_status Start(dtrun_comm* comm, dtrun_work** work, dtrun_error* err) noexcept {
    return WithComm(comm, err, [&] { return comm->Start(op_, work, err); });
  }

 private:
  dtrun_op op_;
};

}  // namespace

extern "C" {

dtrun_status dtrun_allreduce(dtrun_comm* comm, const void* send, void* recv, uint64_t count, int32_t dtype,
                             int32_t reduce, dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_ALLREDUCE, dtype).Buffers(send, recv, count).Reduce(reduce).Start(comm, work, err);
}

dtrun_status dtrun_allreduce_premul(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                    int32_t dtype, double scale, dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_ALLREDUCE, dtype)
      .Buffers(send, recv, count)
      .Reduce(DTRUN_PREMUL_SUM, scale)
      .Start(comm, work, err);
}

dtrun_status dtrun_reduce(dtrun_comm* comm, const void* send, void* recv, uint64_t count, int32_t dtype,
                          int32_t reduce, int32_t root, dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_REDUCE, dtype)
      .Buffers(send, recv, count)
      .Reduce(reduce)
      .Root(root)
      .Start(comm, work, err);
}

dtrun_status dtrun_broadcast(dtrun_comm* comm, void* buffer, uint64_t count, int32_t dtype, int32_t root,
                             dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_BROADCAST, dtype).Buffers(nullptr, buffer, count).Root(root).Start(comm, work, err);
}

dtrun_status dtrun_barrier(dtrun_comm* comm, dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_BARRIER, 0).Start(comm, work, err);
}

dtrun_status dtrun_allgather(dtrun_comm* comm, const void* send, void* recv, uint64_t count, int32_t dtype,
                             dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_ALLGATHER, dtype).Buffers(send, recv, count).Start(comm, work, err);
}

dtrun_status dtrun_reduce_scatter(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                  int32_t dtype, int32_t reduce, dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_REDUCE_SCATTER, dtype).Buffers(send, recv, count).Reduce(reduce).Start(comm, work, err);
}

dtrun_status dtrun_alltoall(dtrun_comm* comm, const void* send, void* recv, uint64_t count, int32_t dtype,
                            dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_ALLTOALL, dtype).Buffers(send, recv, count).Start(comm, work, err);
}

dtrun_status dtrun_gather(dtrun_comm* comm, const void* send, void* recv, uint64_t count, int32_t dtype,
                          int32_t root, dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_GATHER, dtype).Buffers(send, recv, count).Root(root).Start(comm, work, err);
}

dtrun_status dtrun_scatter(dtrun_comm* comm, const void* send, void* recv, uint64_t count, int32_t dtype,
                           int32_t root, dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_SCATTER, dtype).Buffers(send, recv, count).Root(root).Start(comm, work, err);
}

dtrun_status dtrun_allgatherv(dtrun_comm* comm, const void* send, void* recv, const uint64_t* recv_counts,
                              const uint64_t* recv_offsets, int32_t dtype, dtrun_work** work,
                              dtrun_error* err) {
  return Call(DTRUN_ALLGATHERV, dtype)
      .Buffers(send, recv)
      .RecvParts(recv_counts, recv_offsets)
      .Start(comm, work, err);
}

dtrun_status dtrun_reduce_scatterv(dtrun_comm* comm, const void* send, void* recv,
                                   const uint64_t* recv_counts, int32_t dtype, int32_t reduce,
                                   dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_REDUCE_SCATTERV, dtype)
      .Buffers(send, recv)
      .RecvParts(recv_counts, nullptr)
      .Reduce(reduce)
      .Start(comm, work, err);
}

dtrun_status dtrun_alltoallv(dtrun_comm* comm, const void* send, const uint64_t* send_counts,
                             const uint64_t* send_offsets, void* recv, const uint64_t* recv_counts,
                             const uint64_t* recv_offsets, int32_t dtype, dtrun_work** work,
                             dtrun_error* err) {
  return Call(DTRUN_ALLTOALLV, dtype)
      .Buffers(send, recv)
      .SendParts(send_counts, send_offsets)
      .RecvParts(recv_counts, recv_offsets)
      .Start(comm, work, err);
}

dtrun_status dtrun_gatherv(dtrun_comm* comm, const void* send, uint64_t count, void* recv,
                           const uint64_t* recv_counts, const uint64_t* recv_offsets, int32_t dtype,
                           int32_t root, dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_GATHERV, dtype)
      .Buffers(send, recv, count)
      .RecvParts(recv_counts, recv_offsets)
      .Root(root)
      .Start(comm, work, err);
}

dtrun_status dtrun_scatterv(dtrun_comm* comm, const void* send, const uint64_t* send_counts,
                            const uint64_t* send_offsets, void* recv, uint64_t count, int32_t dtype,
                            int32_t root, dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_SCATTERV, dtype)
      .Buffers(send, recv, count)
      .SendParts(send_counts, send_offsets)
      .Root(root)
      .Start(comm, work, err);
}

dtrun_status dtrun_send(dtrun_comm* comm, const void* send, uint64_t count, int32_t dtype, int32_t peer,
                        uint32_t tag, dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_SEND, dtype).Buffers(send, nullptr, count).Peer(peer, tag).Start(comm, work, err);
}

dtrun_status dtrun_recv(dtrun_comm* comm, void* recv, uint64_t count, int32_t dtype, int32_t peer,
                        uint32_t tag, dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_RECV, dtype).Buffers(nullptr, recv, count).Peer(peer, tag).Start(comm, work, err);
}

dtrun_status dtrun_recv_any(dtrun_comm* comm, void* recv, uint64_t count, int32_t dtype, uint32_t tag,
                            int32_t* source, dtrun_work** work, dtrun_error* err) {
  return Call(DTRUN_RECV, dtype)
      .Buffers(nullptr, recv, count)
      .Peer(DTRUN_ANY_SOURCE, tag, source)
      .Start(comm, work, err);
}

dtrun_status dtrun_submit(dtrun_comm* comm, const dtrun_op* op, dtrun_work** work, dtrun_error* err) {
  return WithComm(comm, err, [&] {
    dtrun::Result<dtrun_op> given = dtrun::comm::Given(op, "submit", "op");
    if (!given) return given.error().CopyTo(err);
    comm->ClearUnused(*given);
    return comm->Start(*given, work, err);
  });
}

dtrun_status dtrun_group_begin(dtrun_comm* comm, dtrun_error* err) {
  return WithComm(comm, err, [&] { return comm->GroupBegin(err); });
}

dtrun_status dtrun_group_end(dtrun_comm* comm, dtrun_work** work, dtrun_error* err) {
  return WithComm(comm, err, [&] { return comm->GroupEnd(work, err); });
}

}  // extern "C"
