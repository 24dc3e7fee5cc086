// Operations on device memory, which use a communicator's second route; device memory and streams.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/plugin_error.h"
#include "core/comm/communicator.h"
#include "dtrun/plugin/names.hpp"

using dtrun::Error;
using dtrun::Explained;
using dtrun::PluginError;
using dtrun::Result;
using dtrun::Status;
using dtrun::comm::Device;
using dtrun::comm::Route;
namespace comm = dtrun::comm;
namespace sdk = dtrun::sdk;

namespace {

constexpr std::uint64_t kDeviceAlignment = 256;

Error WrongMemory(const dtrun_op& op, const std::string& buffer, const dtrun_memory& memory,
                  const Route& route) {
  const std::string subject = fmt::format("{}: {} is ", sdk::OperationName(op.kind), buffer);
  const std::string place = fmt::format("{} {}", comm::KindName(memory.device_kind), memory.device_index);
  const std::string device = fmt::format("{} {}", comm::KindName(route.device_kind), route.device_index);
  if (!route.OfDevice()) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 subject + "on " + place + "; give the call a stream of it: submit_on"};
  }
  if (memory.device_kind == DTRUN_DEVICE_HOST) {
    return Error{DTRUN_INVALID_ARGUMENT, subject + "host memory, and the stream is of " + device +
                                             "; copy it there, or make the call without a stream"};
  }
  return Error{DTRUN_INVALID_ARGUMENT, subject + "on " + place + ", and the stream on " + device +
                                           "; all of one operation is on one device"};
}

}  // namespace

dtrun_status dtrun_comm::StartOnStream(dtrun_op& op, const dtrun_stream& stream, dtrun_work** out,
                                       dtrun_error* err) {
  Result<Route*> route = RouteFor(stream, "the stream is of", &op);
  if (!route) return route.error().CopyTo(err);
  ClearUnused(op);
  return StartOn(**route, op, &stream, out, err);
}

Result<dtrun_memory> dtrun_comm::MemoryOf(const dtrun_op& op, const void* buffer, const char* which) const {
  dtrun_memory memory;
  DTRUN_INIT(memory);
  PluginError error;
  const Device& device = *device_plugin_;
  const dtrun_status status = device.table->memory_of(device.instance, buffer, &memory, &error);
  if (status == DTRUN_OK) return memory;
  return Explained(status, error,
                   fmt::format("{}: the {} buffer at {}", sdk::OperationName(op.kind), which, buffer));
}

Status dtrun_comm::CheckMemory(const dtrun_op& op, const Route& route) const {
  const std::pair<const void*, const char*> buffers[] = {{op.send, "send"},
                                                         {op.recv == op.send ? nullptr : op.recv, "recv"}};
  for (const auto& [buffer, which] : buffers) {
    if (buffer == nullptr) continue;
    Result<dtrun_memory> memory = MemoryOf(op, buffer, which);
    if (!memory) return std::move(memory).error();
    // An index of -1 means host memory, or memory that the device's library moves between the two.
    const bool managed = memory->device_kind != DTRUN_DEVICE_HOST && memory->device_index < 0;
    const bool right = memory->device_kind == route.device_kind && memory->device_index == route.device_index;
    if (!right && !managed)
      return WrongMemory(op, fmt::format("the {} buffer at {}", which, buffer), *memory, route);
  }
  return {};
}

Result<bool> dtrun_comm::Captures(const dtrun_op& op, const dtrun_stream& stream, const Route& route,
                                  bool wants_work) const {
  const Device& device = *device_plugin_;
  if (device.table->stream_capturing == nullptr) return false;
  std::int32_t capturing = 0;
  PluginError error;
  if (const dtrun_status status =
          device.table->stream_capturing(device.instance, &stream, &capturing, &error);
      status != DTRUN_OK) {
    return Explained(status, error, fmt::format("{}: the stream", sdk::OperationName(op.kind)));
  }
  if (capturing == 0) return false;
  if ((route.scope.caps.flags & DTRUN_CAP_CAPTURE) == 0) {
    return Error{
        DTRUN_UNSUPPORTED,
        fmt::format("{}: the stream is being captured into a graph, and backend '{}' cannot be; run it "
                    "outside of the capture",
                    sdk::OperationName(op.kind), route.carrier.name)};
  }
  if (!wants_work) return true;
  return Error{
      DTRUN_INVALID_ARGUMENT,
      fmt::format("{}: the stream is being captured into a graph, and replays have no handle; give NULL "
                  "for work",
                  sdk::OperationName(op.kind))};
}

dtrun_status dtrun_comm::PrepareOnDevice(const Route& route, const dtrun_op& op, const dtrun_stream* stream,
                                         bool wants_work, bool* captured, dtrun_error* err) const {
  if (Status memory = CheckMemory(op, route); !memory) return memory.error().CopyTo(err);
  if (stream == nullptr) return DTRUN_OK;
  Result<bool> captures = Captures(op, *stream, route, wants_work);
  if (!captures) return captures.error().CopyTo(err);
  *captured = *captures;
  return DTRUN_OK;
}

dtrun_status dtrun_comm::WaitOnStream(dtrun_work& work, const dtrun_stream& stream, dtrun_error* err) {
  for (dtrun_work* one = &work; one != nullptr; one = one->together) {
    if (const dtrun_status status = OrderBefore(stream, *one, err); status != DTRUN_OK) return status;
  }
  return DTRUN_OK;
}

dtrun_status dtrun_comm::OrderBefore(const dtrun_stream& stream, dtrun_work& work, dtrun_error* err) {
  if (work.route == nullptr) return DTRUN_OK;
  const Route& route = *work.route;
  if (!route.OfDevice()) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("work_wait_on: {} moves host memory, which no stream waits for; use "
                             "work_wait",
                             comm::Describe(work.op, making_.name))}
        .CopyTo(err);
  }
  if (work.request == nullptr) return DTRUN_OK;
  if (Result<Route*> same = RouteFor(stream, "work_wait_on: the stream is of", nullptr); !same)
    return same.error().CopyTo(err);
  if (route.carrier.table.req_wait_stream != nullptr) {
    PluginError cause;
    const comm::OperationCall call(route.carrier.name, making_.report);
    std::unique_lock lock(enqueue_mutex_, std::defer_lock);
    if (!route.carrier.orders_on_host) lock.lock();  // [comm-serial]
    const dtrun_status status = route.carrier.table.req_wait_stream(work.request, &stream, &cause);
    if (lock) lock.unlock();
    if (status != DTRUN_OK) return Fail(work.op, status, cause, err);
  }
  work.ordered = true;
  return DTRUN_OK;
}

dtrun_status dtrun_comm::WaitForHosts(dtrun_work& group, dtrun_error* err) {
  for (dtrun_work* one = &group; one != nullptr; one = one->together) {
    if (one->route != nullptr && one->route->OfDevice()) {
      if (one->route->carrier.orders_on_host) {
        if (const dtrun_status status = OrderBefore(one->stream, *one, err); status != DTRUN_OK)
          return status;
      }
      one->ordered = true;  // its own stream sees it
      continue;
    }
    if (const dtrun_status status = WaitOne(*one, -1, err); status != DTRUN_OK) return status;
  }
  return DTRUN_OK;
}

void dtrun_comm::EndWatch() {
  if (device_.load() == nullptr) return;
  if (!failed_.load(std::memory_order_acquire)) watch_.AwaitDropped();
  watch_.End();
}

dtrun_status dtrun_comm::AllocateOn(std::uint64_t bytes, std::int32_t kind, std::int32_t index, void** out,
                                    dtrun_error* err) {
  if (kind == DTRUN_DEVICE_HOST) return Allocate(bytes, out, err);
  Result<Route*> opened = Opened(kind, index, "alloc_on");
  if (!opened) return opened.error().CopyTo(err);
  const Route& route = **opened;
  dtrun_mem_params params;
  DTRUN_INIT(params);
  params.bytes = std::max<std::uint64_t>(bytes, 1);
  params.alignment = kDeviceAlignment;
  params.device_kind = kind;
  params.device_index = index;
  void* memory = nullptr;
  PluginError cause;
  const bool own = route.carrier.table.mem_alloc != nullptr;
  const dtrun_status status =
      own ? route.carrier.table.mem_alloc(route.comm, &params, &memory, &cause)
          : device_plugin_->table->mem_alloc(device_plugin_->instance, &params, &memory, &cause);
  if (status != DTRUN_OK) {
    return Explained(status, cause,
                     fmt::format("alloc_on of {} bytes on {} {}", bytes, comm::KindName(kind), index))
        .CopyTo(err);
  }
  return Keep(memory, {true, own, params}, out);
}

dtrun_status dtrun_comm::CreateStream(const dtrun_stream_params& params, std::int32_t kind, dtrun_stream* out,
                                      dtrun_error* err) {
  if (Result<Route*> opened = Opened(kind, params.device_index, "stream_create"); !opened)
    return opened.error().CopyTo(err);
  dtrun_stream made;
  DTRUN_INIT(made);
  const Device& device = *device_plugin_;
  PluginError cause;
  if (const dtrun_status status = device.table->stream_create(device.instance, &params, &made, &cause);
      status != DTRUN_OK) {
    return Explained(status, cause, fmt::format("device '{}', making a stream", device.name)).CopyTo(err);
  }
  const std::lock_guard lock(memory_mutex_);
  streams_.push_back(made);
  *out = made;
  return DTRUN_OK;
}

void dtrun_comm::DestroyStream(const dtrun_stream& stream) {
  {
    const std::lock_guard lock(memory_mutex_);
    const auto found = std::find_if(streams_.begin(), streams_.end(),
                                    [&](const dtrun_stream& one) { return one.native == stream.native; });
    if (found == streams_.end()) return;
    streams_.erase(found);
  }
  device_plugin_->table->stream_destroy(device_plugin_->instance, &stream);
}
