// The C API of sdk/include/dtrun/dtrun.h: the job, communicators, memory and running work.
#include <fmt/format.h>

#include "core/comm/guard.h"

using dtrun::Error;
using dtrun::Result;
using dtrun::comm::Current;
using dtrun::comm::Environment;
using dtrun::comm::Family;
using dtrun::comm::Forked;
using dtrun::comm::Guard;
using dtrun::comm::GuardVoid;
using dtrun::comm::Runtime;
using dtrun::comm::WithComm;
using dtrun::comm::WithWork;

namespace {

// Makes a communicator and returns it in `out`, which is untouched on failure.
template <class Body>
dtrun_status Make(dtrun_comm* comm, dtrun_comm** out, dtrun_error* err, Body&& body) noexcept {
  return WithComm(comm, err, [&]() -> dtrun_status {
    if (out == nullptr) return Error{DTRUN_INVALID_ARGUMENT, "out is null"}.CopyTo(err);
    Runtime* runtime = Current();
    if (runtime == nullptr) {
      return Error{DTRUN_FAILED_PRECONDITION, "finalize has ended every communicator"}.CopyTo(err);
    }
    Result<dtrun_comm*> made = body(runtime->family());
    if (!made) return made.error().CopyTo(err);
    *out = *made;
    return DTRUN_OK;
  });
}

// What the thread knows about the error in a caller's struct, which may be shorter than this one.
Error Known(const dtrun_error* err) {
  dtrun_error filled;
  DTRUN_ERROR_INIT(filled);
  if (err != nullptr) std::memcpy(&filled, err, std::min<std::size_t>(err->struct_size, sizeof filled));
  return Error::LastCopied(filled);
}

int Number(int Environment::*member) {
  const Runtime* runtime = Current();
  return runtime == nullptr ? -1 : runtime->environment().*member;
}

}  // namespace

extern "C" {

const char* dtrun_version(void) { return DTRUN_VERSION; }

const char* dtrun_status_text(dtrun_status status) { return dtrun::StatusText(status); }

const char* dtrun_error_id(const dtrun_error* err) {
  const char* id = "internal";
  GuardVoid([&] { id = Known(err).Id().data(); });
  return id;
}

int32_t dtrun_error_ranks(const dtrun_error* err, int32_t* ranks, int32_t capacity) {
  std::int32_t count = 0;
  GuardVoid([&] {
    const std::vector<int> known = Known(err).Ranks();
    count = static_cast<std::int32_t>(known.size());
    std::copy_n(known.begin(), std::clamp(ranks == nullptr ? 0 : capacity, 0, count), ranks);
  });
  return count;
}

uint64_t dtrun_dtype_size(int32_t dtype) { return dtrun::comm::DtypeSize(dtype); }

dtrun_status dtrun_init(dtrun_error* err) {
  return Guard(err, [&] {
    const dtrun::Status status = dtrun::comm::Init();
    return status ? DTRUN_OK : status.error().CopyTo(err);
  });
}

void dtrun_finalize(void) {
  GuardVoid([] { dtrun::comm::Finalize(); });
}

int32_t dtrun_is_initialized(void) { return Current() != nullptr && !Forked() ? 1 : 0; }

int32_t dtrun_rank(void) { return Number(&Environment::rank); }
int32_t dtrun_world_size(void) { return Number(&Environment::world_size); }
int32_t dtrun_local_rank(void) { return Number(&Environment::local_rank); }
int32_t dtrun_local_world_size(void) { return Number(&Environment::local_world_size); }

dtrun_comm* dtrun_world(void) {
  Runtime* runtime = Current();
  return runtime == nullptr ? nullptr : &runtime->world();
}

int32_t dtrun_comm_rank(const dtrun_comm* comm) { return comm == nullptr ? -1 : comm->rank(); }
int32_t dtrun_comm_size(const dtrun_comm* comm) { return comm == nullptr ? -1 : comm->size(); }
const char* dtrun_comm_name(const dtrun_comm* comm) {
  return comm == nullptr ? "" : comm->making().name.c_str();
}
const char* dtrun_comm_backend(const dtrun_comm* comm) {
  return comm == nullptr ? "" : comm->making().backend_name.c_str();
}

dtrun_status dtrun_comm_abort(dtrun_comm* comm, const char* reason, dtrun_error* err) {
  return WithComm(comm, err, [&] { return comm->Abort(reason == nullptr ? "" : reason, err); });
}

dtrun_status dtrun_comm_split(dtrun_comm* comm, int32_t color, int32_t key, dtrun_comm** out,
                              dtrun_error* err) {
  return Make(comm, out, err, [&](Family& family) { return family.Split(*comm, color, key); });
}

dtrun_status dtrun_comm_subset(dtrun_comm* comm, const int32_t* ranks, int32_t count, dtrun_comm** out,
                               dtrun_error* err) {
  return Make(comm, out, err, [&](Family& family) -> Result<dtrun_comm*> {
    if (count < 0 || (count > 0 && ranks == nullptr)) {
      return Error{DTRUN_INVALID_ARGUMENT,
                   fmt::format("subset: {} ranks at {}; expected a list of at least one rank", count,
                               static_cast<const void*>(ranks))};
    }
    return family.Subset(*comm, {ranks, static_cast<std::size_t>(count)});
  });
}

void dtrun_comm_free(dtrun_comm* comm) {
  GuardVoid([&] {
    if (Runtime* runtime = Current(); runtime != nullptr && comm != nullptr) runtime->family().Free(comm);
  });
}

dtrun_status dtrun_alloc(dtrun_comm* comm, uint64_t bytes, void** out, dtrun_error* err) {
  return WithComm(comm, err, [&] {
    if (out == nullptr) return Error{DTRUN_INVALID_ARGUMENT, "alloc: out is null"}.CopyTo(err);
    return comm->Allocate(bytes, out, err);
  });
}

void dtrun_free(dtrun_comm* comm, void* memory) {
  GuardVoid([&] {
    if (comm != nullptr && memory != nullptr) comm->Free(memory);
  });
}

dtrun_status dtrun_work_test(dtrun_work* work, int32_t* done, dtrun_error* err) {
  return WithWork(work, err, [&](dtrun_comm& comm) {
    if (done == nullptr) return Error{DTRUN_INVALID_ARGUMENT, "work_test: done is null"}.CopyTo(err);
    return comm.Test(*work, done, err);
  });
}

dtrun_status dtrun_work_wait(dtrun_work* work, int64_t timeout_ns, dtrun_error* err) {
  return WithWork(work, err,
                  [&](dtrun_comm& comm) { return comm.Wait(*work, timeout_ns < 0 ? -1 : timeout_ns, err); });
}

void dtrun_work_release(dtrun_work* work) {
  // In a forked child, where the guard stops, the operation belongs to the parent: leave it alone.
  GuardVoid([&] {
    if (work == nullptr) return;
    if (!dtrun_work::IsHeld(work)) {
      if (Runtime* runtime = Current(); runtime != nullptr)
        runtime->world().Misused("work_release", dtrun::comm::AlreadyReleased(work));
    } else if (work->comm == nullptr) {
      dtrun_comm::Delete(work);
    } else {
      work->comm->Release(work);
    }
  });
}

}  // extern "C"
