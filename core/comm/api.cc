// The C API of sdk/include/dtrun/dtrun.h. Nothing here but the way in: no exception leaves,
// and a forked child gets no further.
#include <exception>
#include <new>
#include <string>

#include "core/comm/communicator.h"
#include "core/comm/process.h"
#include "dtrun/dtrun.h"

namespace {

using dtrun::Error;

// Runs what may fail; an exception becomes a status.
template <class Body>
dtrun_status Guard(dtrun_error* err, Body&& body) noexcept {
  try {
    if (dtrun::comm::Forked()) return dtrun::comm::ForkError().CopyTo(err);
    return body();
  } catch (const std::bad_alloc&) {
    return Error{DTRUN_OUT_OF_MEMORY, {}}.CopyTo(err);
  } catch (const std::exception& error) {
    try {
      return Error{DTRUN_INTERNAL, std::string("unexpected exception: ") + error.what()}.CopyTo(err);
    } catch (...) {
      return Error{DTRUN_INTERNAL, {}}.CopyTo(err);
    }
  } catch (...) {
    return Error{DTRUN_INTERNAL, {}}.CopyTo(err);
  }
}

dtrun_op Operation(std::int32_t kind) {
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = kind;
  op.root = -1;
  op.peer = -1;
  return op;
}

dtrun_status Start(dtrun_comm* comm, dtrun_op& op, dtrun_work** work, dtrun_error* err) noexcept {
  return Guard(err, [&] {
    if (comm == nullptr) {
      return Error{DTRUN_INVALID_ARGUMENT, "the communicator is null; dtrun_world gives one after dtrun_init"}
          .CopyTo(err);
    }
    return comm->Start(op, work, err);
  });
}

// Checks a handle before `body` uses its communicator.
template <class Body>
dtrun_status WithWork(dtrun_work* work, dtrun_error* err, Body&& body) noexcept {
  return Guard(err, [&] {
    if (work == nullptr) return Error{DTRUN_INVALID_ARGUMENT, "the work handle is null"}.CopyTo(err);
    if (work->comm == nullptr) {
      return Error{DTRUN_FAILED_PRECONDITION,
                   "the operation belongs to a communicator that dtrun_finalize has ended"}
          .CopyTo(err);
    }
    return body(*work->comm);
  });
}

int Number(int dtrun::comm::Environment::*member) {
  const dtrun::comm::Runtime* runtime = dtrun::comm::Current();
  return runtime == nullptr ? -1 : runtime->environment().*member;
}

}  // namespace

extern "C" {

const char* dtrun_version(void) { return DTRUN_VERSION; }

const char* dtrun_status_text(dtrun_status status) { return dtrun::StatusText(status); }

uint64_t dtrun_dtype_size(int32_t dtype) { return dtrun::comm::DtypeSize(dtype); }

dtrun_status dtrun_init(dtrun_error* err) {
  return Guard(err, [&] {
    const dtrun::Status status = dtrun::comm::Init();
    return status ? DTRUN_OK : status.error().CopyTo(err);
  });
}

void dtrun_finalize(void) {
  (void)Guard(nullptr, [] {
    dtrun::comm::Finalize();
    return dtrun_status{DTRUN_OK};
  });
}

int32_t dtrun_is_initialized(void) {
  return dtrun::comm::Current() != nullptr && !dtrun::comm::Forked() ? 1 : 0;
}

int32_t dtrun_rank(void) { return Number(&dtrun::comm::Environment::rank); }
int32_t dtrun_world_size(void) { return Number(&dtrun::comm::Environment::world_size); }
int32_t dtrun_local_rank(void) { return Number(&dtrun::comm::Environment::local_rank); }
int32_t dtrun_local_world_size(void) { return Number(&dtrun::comm::Environment::local_world_size); }

dtrun_comm* dtrun_world(void) {
  dtrun::comm::Runtime* runtime = dtrun::comm::Current();
  return runtime == nullptr ? nullptr : &runtime->world();
}

int32_t dtrun_comm_rank(const dtrun_comm* comm) { return comm == nullptr ? -1 : comm->rank(); }
int32_t dtrun_comm_size(const dtrun_comm* comm) { return comm == nullptr ? -1 : comm->size(); }
const char* dtrun_comm_backend(const dtrun_comm* comm) {
  return comm == nullptr ? "" : comm->backend_name().c_str();
}

dtrun_status dtrun_comm_abort(dtrun_comm* comm, const char* reason, dtrun_error* err) {
  return Guard(err, [&] {
    if (comm == nullptr) return Error{DTRUN_INVALID_ARGUMENT, "the communicator is null"}.CopyTo(err);
    return comm->Abort(reason == nullptr ? "" : reason, err);
  });
}

dtrun_status dtrun_allreduce(dtrun_comm* comm, const void* send, void* recv, uint64_t count, int32_t dtype,
                             int32_t reduce, dtrun_work** work, dtrun_error* err) {
  dtrun_op op = Operation(DTRUN_ALLREDUCE);
  op.send = send;
  op.recv = recv;
  op.count = count;
  op.dtype = dtype;
  op.reduce = reduce;
  return Start(comm, op, work, err);
}

dtrun_status dtrun_broadcast(dtrun_comm* comm, void* buffer, uint64_t count, int32_t dtype, int32_t root,
                             dtrun_work** work, dtrun_error* err) {
  dtrun_op op = Operation(DTRUN_BROADCAST);
  op.recv = buffer;
  op.count = count;
  op.dtype = dtype;
  op.root = root;
  return Start(comm, op, work, err);
}

dtrun_status dtrun_allgather(dtrun_comm* comm, const void* send, void* recv, uint64_t count, int32_t dtype,
                             dtrun_work** work, dtrun_error* err) {
  dtrun_op op = Operation(DTRUN_ALLGATHER);
  op.send = send;
  op.recv = recv;
  op.count = count;
  op.dtype = dtype;
  return Start(comm, op, work, err);
}

dtrun_status dtrun_reduce_scatter(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                  int32_t dtype, int32_t reduce, dtrun_work** work, dtrun_error* err) {
  dtrun_op op = Operation(DTRUN_REDUCE_SCATTER);
  op.send = send;
  op.recv = recv;
  op.count = count;
  op.dtype = dtype;
  op.reduce = reduce;
  return Start(comm, op, work, err);
}

dtrun_status dtrun_barrier(dtrun_comm* comm, dtrun_work** work, dtrun_error* err) {
  dtrun_op op = Operation(DTRUN_BARRIER);
  return Start(comm, op, work, err);
}

dtrun_status dtrun_send(dtrun_comm* comm, const void* send, uint64_t count, int32_t dtype, int32_t peer,
                        uint32_t tag, dtrun_work** work, dtrun_error* err) {
  dtrun_op op = Operation(DTRUN_SEND);
  op.send = send;
  op.count = count;
  op.dtype = dtype;
  op.peer = peer;
  op.tag = tag;
  return Start(comm, op, work, err);
}

dtrun_status dtrun_recv(dtrun_comm* comm, void* recv, uint64_t count, int32_t dtype, int32_t peer,
                        uint32_t tag, dtrun_work** work, dtrun_error* err) {
  dtrun_op op = Operation(DTRUN_RECV);
  op.recv = recv;
  op.count = count;
  op.dtype = dtype;
  op.peer = peer;
  op.tag = tag;
  return Start(comm, op, work, err);
}

dtrun_status dtrun_work_test(dtrun_work* work, int32_t* done, dtrun_error* err) {
  return WithWork(work, err, [&](dtrun_comm& comm) {
    if (done == nullptr) return Error{DTRUN_INVALID_ARGUMENT, "dtrun_work_test: done is null"}.CopyTo(err);
    return comm.Test(*work, done, err);
  });
}

dtrun_status dtrun_work_wait(dtrun_work* work, int64_t timeout_ns, dtrun_error* err) {
  return WithWork(work, err,
                  [&](dtrun_comm& comm) { return comm.Wait(*work, timeout_ns < 0 ? -1 : timeout_ns, err); });
}

void dtrun_work_release(dtrun_work* work) {
  // In a forked child the operation is the parent's: the handle is left alone.
  if (work == nullptr || dtrun::comm::Forked()) return;
  (void)Guard(nullptr, [&] {
    if (work->comm == nullptr) {
      delete work;
    } else {
      work->comm->Release(work);
    }
    return dtrun_status{DTRUN_OK};
  });
}

}  // extern "C"
