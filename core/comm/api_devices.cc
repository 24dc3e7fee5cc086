// The C API of sdk/include/dtrun/dtrun.h: memory, streams and operations of devices.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/comm/guard.h"

using dtrun::Error;
using dtrun::Result;
using dtrun::Status;
using dtrun::comm::GuardVoid;
using dtrun::comm::WithComm;

namespace {

Status CheckSize(const dtrun_stream* stream, const char* call) {
  constexpr std::size_t kSmallest = offsetof(dtrun_stream, native) + sizeof stream->native;
  if (stream != nullptr && stream->struct_size >= kSmallest) return {};
  return Error{DTRUN_INVALID_ARGUMENT,
               stream == nullptr ? fmt::format("{}: the stream is null", call)
                                 : fmt::format("{}: the stream has a struct_size of {}; DTRUN_INIT sets it",
                                               call, stream->struct_size)};
}

// A copy of the caller's stream, up to the fields that these headers know.
Result<dtrun_stream> Given(const dtrun_stream* stream, const char* call) {
  if (Status size = CheckSize(stream, call); !size) return std::move(size).error();
  if (const std::uint32_t unknown = stream->flags & DTRUN_FLAGS_MUST_UNDERSTAND; unknown != 0)
    return Error{DTRUN_UNSUPPORTED, fmt::format("{}: the stream has the unknown flags {:#x}", call, unknown)};
  dtrun_stream known;
  DTRUN_INIT(known);
  std::memcpy(&known, stream, std::min<std::size_t>(stream->struct_size, sizeof known));
  known.struct_size = sizeof known;
  return known;
}

}  // namespace

extern "C" {

dtrun_status dtrun_submit_on(dtrun_comm* comm, const dtrun_op* op, const dtrun_stream* stream,
                             dtrun_work** work, dtrun_error* err) {
  if (stream == nullptr) return dtrun_submit(comm, op, work, err);
  return WithComm(comm, err, [&]() -> dtrun_status {
    Result<dtrun_op> given = dtrun::comm::GivenOp(op, "submit_on");
    if (!given) return given.error().CopyTo(err);
    Result<dtrun_stream> on = Given(stream, "submit_on");
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
  return dtrun::comm::WithWork(work, err, [&](dtrun_comm& comm) -> dtrun_status {
    Result<dtrun_stream> on = Given(stream, "work_wait_on");
    return on ? comm.WaitOnStream(*work, *on, err) : on.error().CopyTo(err);
  });
}

dtrun_status dtrun_comm_connect(dtrun_comm* comm, int32_t device_kind, int32_t device_index,
                                dtrun_error* err) {
  return WithComm(comm, err, [&] { return comm->Connect(device_kind, device_index, err); });
}

const char* dtrun_comm_route(dtrun_comm* comm, int32_t device_kind, dtrun_error* err) {
  const char* name = "";
  (void)WithComm(comm, err, [&]() -> dtrun_status {
    Result<std::string_view> route = comm->RouteOf(device_kind);
    if (!route) return route.error().CopyTo(err);
    name = route->data();
    return DTRUN_OK;
  });
  return name;
}

int32_t dtrun_comm_orders_on_host(dtrun_comm* comm, int32_t device_kind) {
  bool orders = false;
  (void)WithComm(comm, nullptr, [&]() -> dtrun_status {
    orders = comm->OrdersOnHost(device_kind);
    return DTRUN_OK;
  });
  return orders ? 1 : 0;
}

dtrun_status dtrun_alloc_on(dtrun_comm* comm, uint64_t bytes, int32_t device_kind, int32_t device_index,
                            void** out, dtrun_error* err) {
  return WithComm(comm, err, [&] {
    if (out == nullptr) return Error{DTRUN_INVALID_ARGUMENT, "alloc_on: out is null"}.CopyTo(err);
    return comm->AllocateOn(bytes, device_kind, device_index, out, err);
  });
}

dtrun_status dtrun_register(dtrun_comm* comm, void* memory, uint64_t bytes, int32_t device_kind,
                            int32_t device_index, dtrun_error* err) {
  return WithComm(comm, err, [&] { return comm->Register(memory, bytes, device_kind, device_index, err); });
}

void dtrun_deregister(dtrun_comm* comm, void* memory) {
  GuardVoid([&] {
    if (comm != nullptr && memory != nullptr) comm->Deregister(memory);
  });
}

dtrun_status dtrun_stream_create(dtrun_comm* comm, int32_t device_kind, int32_t device_index,
                                 int32_t priority, dtrun_stream* out, dtrun_error* err) {
  return WithComm(comm, err, [&]() -> dtrun_status {
    // Only the size of the output is read: it tells how much of a stream the caller's headers know.
    if (Status size = CheckSize(out, "stream_create"); !size) return size.error().CopyTo(err);
    if (priority != 0 && priority != 1) {
      return Error{DTRUN_INVALID_ARGUMENT,
                   fmt::format("stream_create: priority is {}; expected 0 or 1", priority)}
          .CopyTo(err);
    }
    dtrun_stream_params params;
    DTRUN_INIT(params);
    params.device_index = device_index;
    params.priority = priority;
    dtrun_stream made;
    const dtrun_status status = comm->CreateStream(params, device_kind, &made, err);
    if (status != DTRUN_OK) return status;
    made.struct_size = out->struct_size;
    std::memcpy(out, &made, std::min<std::size_t>(out->struct_size, sizeof made));
    return DTRUN_OK;
  });
}

void dtrun_stream_destroy(dtrun_comm* comm, const dtrun_stream* stream) {
  GuardVoid([&] {
    if (comm != nullptr && stream != nullptr) comm->DestroyStream(*stream);
  });
}

}  // extern "C"
