// The C API of sdk/include/dtrun/dtrun.h: the job, communicators, memory, running work, and devices.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/comm/metrics.h"
#include "core/comm/runtime.h"
#include "dtrun/abi/structs.h"
#include "dtrun/failure.h"

using dtrun::Error;
using dtrun::Result;
using dtrun::Status;
using dtrun::comm::CheckSize;
using dtrun::comm::Current;
using dtrun::comm::Environment;
using dtrun::comm::Family;
using dtrun::comm::Forked;
using dtrun::comm::Given;
using dtrun::comm::Guard;
using dtrun::comm::GuardVoid;
using dtrun::comm::IsOpen;
using dtrun::comm::Metrics;
using dtrun::comm::Runtime;
using dtrun::comm::WithComm;
using dtrun::comm::WithWork;

namespace {

// Makes a communicator and returns it in `out`, which is untouched on failure.
template <class Body>
dtrun_status Make(dtrun_comm* comm, dtrun_comm** out, dtrun_error* err, Body&& body) noexcept {
  return WithComm(comm, err, [&]() -> Status {
    if (out == nullptr) return Error{DTRUN_INVALID_ARGUMENT, "out is null"};
    Runtime* runtime = Current();
    if (runtime == nullptr) return Error{DTRUN_FAILED_PRECONDITION, "finalize has ended every communicator"};
    Result<dtrun_comm*> made = body(runtime->family());
    if (!made) return std::move(made).error();
    *out = *made;
    return {};
  });
}

template <class Body>
dtrun_status Allocate(dtrun_comm* comm, void** out, dtrun_error* err, const char* call,
                      Body&& body) noexcept {
  return WithComm(comm, err, [&]() -> Status {
    if (out == nullptr) return Error{DTRUN_INVALID_ARGUMENT, std::string(call) + ": out is null"};
    Result<void*> made = body();
    if (!made) return std::move(made).error();
    *out = *made;
    return {};
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

constexpr std::size_t kLeastExtension = 32;  // its size in ABI 1.0

}  // namespace

extern "C" {

const char* dtrun_version(void) { return DTRUN_VERSION; }

const char* dtrun_status_text(dtrun_status status) { return dtrun::StatusText(status); }

const char* dtrun_error_id(const dtrun_error* err) {
  const char* id = "internal";
  GuardVoid([&] { id = Known(err).Id().data(); }, true);
  return id;
}

int32_t dtrun_error_ranks(const dtrun_error* err, int32_t* ranks, int32_t capacity) {
  std::int32_t count = 0;
  GuardVoid(
      [&] {
        const std::vector<int> known = Known(err).Ranks();
        count = static_cast<std::int32_t>(known.size());
        std::copy_n(known.begin(), std::clamp(ranks == nullptr ? 0 : capacity, 0, count), ranks);
      },
      true);
  return count;
}

uint64_t dtrun_dtype_size(int32_t dtype) { return dtrun::comm::DtypeSize(dtype); }

dtrun_status dtrun_init(dtrun_error* err) {
  return Guard(err, [] { return dtrun::comm::Init(); });
}

void dtrun_finalize(void) {
  GuardVoid([] { dtrun::comm::Finalize(); });
}

int32_t dtrun_is_initialized(void) { return Current() != nullptr && !Forked() ? 1 : 0; }

dtrun_status dtrun_metric(const char* name, double value, int64_t step, dtrun_error* err) {
  const auto set = [&]() -> Status {
    if (name == nullptr)
      return Error{DTRUN_INVALID_ARGUMENT, "the metric name is null; give one, such as \"loss\""};
    return Metrics::The().Set(name, value, step < 0 ? std::nullopt : std::optional<std::int64_t>(step));
  };
  return Guard(err, set, true);
}

int32_t dtrun_rank(void) { return Number(&Environment::rank); }
int32_t dtrun_world_size(void) { return Number(&Environment::world_size); }
int32_t dtrun_local_rank(void) { return Number(&Environment::local_rank); }
int32_t dtrun_local_world_size(void) { return Number(&Environment::local_world_size); }

dtrun_comm* dtrun_world(void) {
  Runtime* runtime = Current();
  return runtime == nullptr ? nullptr : &runtime->world();
}

int32_t dtrun_comm_rank(const dtrun_comm* comm) { return !IsOpen(comm) ? -1 : comm->rank(); }
int32_t dtrun_comm_size(const dtrun_comm* comm) { return !IsOpen(comm) ? -1 : comm->size(); }
const char* dtrun_comm_name(const dtrun_comm* comm) {
  return !IsOpen(comm) ? "" : comm->making().name.c_str();
}
const char* dtrun_comm_backend(const dtrun_comm* comm) {
  return !IsOpen(comm) ? "" : comm->making().backend_name.c_str();
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

dtrun_status dtrun_comm_extension(dtrun_comm* comm, const char* id, dtrun_extension* out, dtrun_error* err) {
  return WithComm(comm, err, [&]() -> Status {
    if (Status size = CheckSize(out, "extension", "the struct", kLeastExtension); !size) return size;
    Result<dtrun_extension> found = comm->Extension(id);
    if (!found) return std::move(found).error();
    dtrun_struct_write(out, &*found, sizeof *found);
    return {};
  });
}

dtrun_status dtrun_alloc(dtrun_comm* comm, uint64_t bytes, void** out, dtrun_error* err) {
  return Allocate(comm, out, err, "alloc", [&] { return comm->memory().Allocate(bytes); });
}

void dtrun_free(dtrun_comm* comm, void* memory) {
  GuardVoid([&] {
    if (IsOpen(comm) && memory != nullptr) comm->memory().Free(memory);
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

// ---- devices ----

dtrun_status dtrun_submit_on(dtrun_comm* comm, const dtrun_op* op, const dtrun_stream* stream,
                             dtrun_work** work, dtrun_error* err) {
  if (stream == nullptr) return dtrun_submit(comm, op, work, err);
  return WithComm(comm, err, [&]() -> dtrun_status {
    Result<dtrun_op> given = Given(op, "submit_on", "op");
    if (!given) return given.error().CopyTo(err);
    Result<dtrun_stream> on = Given(stream, "submit_on", "the stream");
    if (!on) return on.error().CopyTo(err);
    if (on->device_kind == DTRUN_DEVICE_HOST) {
      return Error{DTRUN_INVALID_ARGUMENT,
                   "submit_on: the stream's device_kind is the host, which has none; "
                   "give NULL for host memory"}
          .CopyTo(err);
    }
    return comm->StartOnStream(*given, *on, work, err);
  });
}

dtrun_status dtrun_work_wait_on(dtrun_work* work, const dtrun_stream* stream, dtrun_error* err) {
  return WithWork(work, err, [&](dtrun_comm& comm) -> dtrun_status {
    Result<dtrun_stream> on = Given(stream, "work_wait_on", "the stream");
    return on ? comm.WaitOnStream(*work, *on, err) : on.error().CopyTo(err);
  });
}

dtrun_status dtrun_comm_connect(dtrun_comm* comm, int32_t device_kind, int32_t device_index,
                                dtrun_error* err) {
  return WithComm(comm, err, [&] { return comm->devices().Connect(device_kind, device_index); });
}

const char* dtrun_comm_route(dtrun_comm* comm, int32_t device_kind, dtrun_error* err) {
  const char* name = "";
  (void)WithComm(comm, err, [&]() -> Status {
    Result<std::string_view> route = comm->devices().RouteOf(device_kind);
    if (!route) return std::move(route).error();
    name = route->data();
    return {};
  });
  return name;
}

int32_t dtrun_comm_orders_on_host(dtrun_comm* comm, int32_t device_kind) {
  bool orders = false;
  GuardVoid([&] { orders = IsOpen(comm) && comm->devices().OrdersOnHost(device_kind); });
  return orders ? 1 : 0;
}

dtrun_status dtrun_alloc_on(dtrun_comm* comm, uint64_t bytes, int32_t device_kind, int32_t device_index,
                            void** out, dtrun_error* err) {
  return Allocate(comm, out, err, "alloc_on",
                  [&] { return comm->memory().AllocateOn(bytes, device_kind, device_index); });
}

dtrun_status dtrun_register(dtrun_comm* comm, void* memory, uint64_t bytes, int32_t device_kind,
                            int32_t device_index, dtrun_error* err) {
  return WithComm(comm, err,
                  [&] { return comm->memory().Register(memory, bytes, device_kind, device_index); });
}

void dtrun_deregister(dtrun_comm* comm, void* memory) {
  GuardVoid([&] {
    if (IsOpen(comm) && memory != nullptr) comm->memory().Deregister(memory);
  });
}

dtrun_status dtrun_stream_create(dtrun_comm* comm, int32_t device_kind, int32_t device_index,
                                 int32_t priority, dtrun_stream* out, dtrun_error* err) {
  return WithComm(comm, err, [&]() -> Status {
    // Only the size of the output is read: it tells how much of a stream the caller's headers know.
    if (Status size = CheckSize(out, "stream_create", "the stream"); !size) return size;
    if (priority != 0 && priority != 1) {
      return Error{DTRUN_INVALID_ARGUMENT,
                   fmt::format("stream_create: priority is {}; expected 0 or 1", priority)};
    }
    dtrun_stream_params params;
    DTRUN_INIT(params);
    params.device_index = device_index;
    params.priority = priority;
    Result<dtrun_stream> made = comm->devices().CreateStream(params, device_kind);
    if (!made) return std::move(made).error();
    dtrun_struct_write(out, &*made, sizeof *made);
    return {};
  });
}

void dtrun_stream_destroy(dtrun_comm* comm, const dtrun_stream* stream) {
  GuardVoid([&] {
    if (IsOpen(comm) && stream != nullptr) comm->devices().DestroyStream(*stream);
  });
}

}  // extern "C"
