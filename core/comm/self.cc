#include "core/comm/self.h"

#include <atomic>
#include <cstring>
#include <new>

#include "core/base/error.h"
#include "core/comm/form.h"
#include "core/comm/operation.h"
#include "dtrun/kernels.hpp"

namespace dtrun::comm {
namespace {

struct SelfComm {
  std::atomic<bool> aborted = false;
};

SelfComm* Of(dtrun_backend_comm* comm) { return reinterpret_cast<SelfComm*>(comm); }

// All operations are done when enqueue returns, so one request serves them all.
dtrun_request* DoneRequest() {
  static char done;
  return reinterpret_cast<dtrun_request*>(&done);
}

dtrun_status QueryCaps(dtrun_instance*, dtrun_backend_caps* out, dtrun_error*) {
  out->flags = DTRUN_CAP_ABORT | DTRUN_CAP_THREAD_MULTIPLE;
  out->ops = ((1u << DTRUN_OP_COUNT) - 2) & ~(1u << DTRUN_SEND | 1u << DTRUN_RECV);
  out->dtypes = (1u << DTRUN_DTYPE_COUNT) - 2;
  out->reduces = (1u << DTRUN_REDUCE_COUNT) - 2;
  out->max_bytes = 0;
  return DTRUN_OK;
}

dtrun_status Create(dtrun_instance*, const dtrun_comm_params*, dtrun_backend_comm** out, dtrun_error* err) {
  auto* comm = new (std::nothrow) SelfComm;
  if (comm == nullptr) return Error{DTRUN_OUT_OF_MEMORY, "out of memory"}.CopyTo(err);
  *out = reinterpret_cast<dtrun_backend_comm*>(comm);
  return DTRUN_OK;
}

void Destroy(dtrun_backend_comm* comm) { delete Of(comm); }

void Abort(dtrun_backend_comm* comm, dtrun_string) { Of(comm)->aborted = true; }

// The only part of a buffer that has one for every rank.
struct Part {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

Part OnlyPart(const dtrun_op& op, Shape shape) {
  const auto first = [](const std::uint64_t* array) { return array == nullptr ? 0 : array[0]; };
  switch (shape) {
    case Shape::kNone: return {};
    case Shape::kSendParts: return {first(op.send_offsets), op.send_counts[0]};
    case Shape::kRecvParts: return {first(op.recv_offsets), op.recv_counts[0]};
    case Shape::kMine: return {0, op.recv_counts[0]};
    default: return {0, op.count};
  }
}

// One rank: its contribution is the result, as far as the reduction leaves it alone.
void Reduce(const dtrun_op& op, void* out, const void* in, std::uint64_t count) {
  if (op.reduce == DTRUN_PREMUL_SUM) {
    kernels::Scale(out, in, count, op.dtype, op.scale);
  } else if (op.dtype == DTRUN_BOOL || op.reduce == DTRUN_LAND || op.reduce == DTRUN_LOR) {
    kernels::ReduceFor(op.dtype, op.reduce)(out, &in, 1, count);
  } else if (in != out) {
    std::memcpy(out, in, count * DtypeSize(op.dtype));
  }
}

dtrun_status Enqueue(dtrun_backend_comm* comm, const dtrun_op* op, const dtrun_stream*, dtrun_request** out,
                     dtrun_error* err) {
  if (Of(comm)->aborted) return Error{DTRUN_ABORTED, "aborted"}.CopyTo(err);
  const Form& form = FormOf(op->kind);
  const Part send = OnlyPart(*op, form.send), recv = OnlyPart(*op, form.recv);
  *out = DoneRequest();
  if (send.count == 0 || recv.count == 0) return DTRUN_OK;
  const std::uint64_t size = DtypeSize(op->dtype);
  const void* from = static_cast<const char*>(op->send) + send.offset * size;
  void* to = static_cast<char*>(op->recv) + recv.offset * size;
  if (form.reduces) {
    Reduce(*op, to, from, recv.count);
  } else if (from != to) {
    std::memcpy(to, from, recv.count * size);
  }
  return DTRUN_OK;
}

dtrun_status Test(dtrun_request*, std::int32_t* done, dtrun_error*) {
  *done = 1;
  return DTRUN_OK;
}

dtrun_status WaitHost(dtrun_request*, std::int64_t, dtrun_error*) { return DTRUN_OK; }

void Release(dtrun_request*) {}

}  // namespace

const dtrun_backend& SelfBackend() {
  static const dtrun_backend table = [] {
    dtrun_backend t;
    DTRUN_INIT(t);
    t.query_caps = QueryCaps;
    t.comm_create = Create;
    t.comm_destroy = Destroy;
    t.comm_abort = Abort;
    t.enqueue = Enqueue;
    t.req_test = Test;
    t.req_wait_host = WaitHost;
    t.req_release = Release;
    return t;
  }();
  return table;
}

}  // namespace dtrun::comm
