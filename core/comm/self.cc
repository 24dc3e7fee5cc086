#include "core/comm/self.h"

#include <atomic>
#include <new>

#include "core/base/error.h"
#include "dtrun/algorithms.hpp"
#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {
namespace {

struct SelfComm {
  std::atomic<bool> aborted = false;
};

SelfComm* Of(dtrun_backend_comm* comm) { return reinterpret_cast<SelfComm*>(comm); }

dtrun_status QueryCaps(dtrun_instance*, dtrun_backend_caps* out, dtrun_error*) {
  out->features = DTRUN_CAP_ABORT;
  out->ops = ((1u << sdk::kOperationEnd) - 2) & ~(1u << DTRUN_SEND | 1u << DTRUN_RECV);
  out->dtypes = (1u << sdk::kTypeEnd) - 2;
  out->reduces = (1u << sdk::kReductionEnd) - 2;
  out->reduce_dtypes = out->dtypes;
  out->device_kinds = 1u << DTRUN_DEVICE_HOST;
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

dtrun_status Abort(dtrun_backend_comm* comm, const dtrun_abort_params*, dtrun_error*) {
  Of(comm)->aborted = true;
  return DTRUN_OK;
}

// Every operation is complete when this returns, so there are no requests.
dtrun_status Enqueue(dtrun_backend_comm* comm, const dtrun_op* op, const dtrun_stream*, dtrun_request**,
                     dtrun_error* err) {
  if (Of(comm)->aborted) return Error{DTRUN_ABORTED, "aborted"}.CopyTo(err);
  algorithms::RunAlone(*op);
  return DTRUN_OK;
}

dtrun_status Test(dtrun_request*, dtrun_error*) { return DTRUN_OK; }

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
