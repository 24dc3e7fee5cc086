// Operations on the memory of devices: the second route of a communicator.
//
// The route is opened by the first call that needs it, which all ranks make; then it stays.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/plugin_error.h"
#include "core/comm/agreement.h"
#include "core/comm/communicator.h"
#include "core/plugin/host.h"
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
constexpr std::int32_t kLastKind = 62;  // types.h

// Of the process's environment, where that says which devices it sees: numbers, or UUIDs of GPUs and slices.
std::string Visible(std::int32_t kind) {
  constexpr const char* kVariables[] = {nullptr, "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                        "ZE_AFFINITY_MASK"};
  const char* const name = kind <= DTRUN_DEVICE_LEVEL_ZERO ? kVariables[kind] : nullptr;
  const char* const value = name == nullptr ? nullptr : std::getenv(name);
  return value == nullptr ? "" : fmt::format(" ({}={})", name, value);
}

Error NoDevices(std::string_view name, std::int32_t kind) {
  return Error{DTRUN_UNSUPPORTED,
               fmt::format("'{}' takes host memory only, not memory of {}", name, comm::KindName(kind))};
}

Status CheckKind(std::int32_t kind) {
  if (kind > DTRUN_DEVICE_HOST && kind <= DTRUN_DEVICE_LEVEL_ZERO) return {};
  if (kind >= DTRUN_DEVICE_OTHER && kind <= kLastKind) return {};
  if (kind == DTRUN_DEVICE_HOST) {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        "device_kind is DTRUN_DEVICE_HOST, whose memory needs no connection and no stream; expected a "
        "device's, such as DTRUN_DEVICE_CUDA"};
  }
  return Error{
      DTRUN_INVALID_ARGUMENT,
      fmt::format("device_kind is {}; expected DTRUN_DEVICE_CUDA (1), DTRUN_DEVICE_ROCM (2), "
                  "DTRUN_DEVICE_LEVEL_ZERO (3), or of another plugin from DTRUN_DEVICE_OTHER ({}) to {}",
                  kind, static_cast<int>(DTRUN_DEVICE_OTHER), kLastKind)};
}

Error WrongMemory(const dtrun_op& op, const std::string& buffer, const dtrun_memory& memory,
                  const Route& route) {
  const std::string subject = fmt::format("{}: {} is ", sdk::OperationName(op.kind), buffer);
  const std::string place = fmt::format("{} {}", comm::KindName(memory.device_kind), memory.device_index);
  const std::string device = fmt::format("{} {}", comm::KindName(route.device_kind), route.device_index);
  if (!route.OfDevice()) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 subject + "on " + place + "; give the call a stream of it: dtrun_submit_on"};
  }
  if (memory.device_kind == DTRUN_DEVICE_HOST) {
    return Error{DTRUN_INVALID_ARGUMENT, subject + "host memory, and the stream is of " + device +
                                             "; copy it there, or make the call without a stream"};
  }
  return Error{DTRUN_INVALID_ARGUMENT, subject + "on " + place + ", and the stream on " + device +
                                           "; all of one operation is on one device"};
}

// Calls a member of a device plugin; a failure says what was under way.
template <class Member>
Status Call(const Device& device, std::string_view doing, Member&& member) {
  PluginError error;
  const dtrun_status status = member(*device.table, device.instance, &error);
  if (status == DTRUN_OK) return {};
  return Explained(status, error, fmt::format("device '{}', {}", device.name, doing));
}

}  // namespace

dtrun_status dtrun_comm::StartOnStream(dtrun_op& op, const dtrun_stream& stream, dtrun_work** out,
                                       dtrun_error* err) {
  Result<Route*> route = RouteFor(stream, "the stream is of", &op);
  if (!route) return route.error().CopyTo(err);
  ClearUnused(op);
  return StartOn(**route, op, &stream, out, err);
}

Result<Route*> dtrun_comm::RouteFor(const dtrun_stream& stream, const std::string& wish, const dtrun_op* op) {
  Route* route = device_.load(std::memory_order_acquire);
  if (route == nullptr) {
    if (Status kind = CheckKind(stream.device_kind); !kind) return std::move(kind).error();
    if (op != nullptr && !sdk::IsCollective(op->kind) && making_.size > 1) {
      return Error{
          DTRUN_FAILED_PRECONDITION,
          fmt::format("{}: the ranks of '{}' are not connected by {} yet, and a message concerns two of "
                      "them; call dtrun_comm_connect on all first",
                      sdk::OperationName(op->kind), making_.name, comm::KindName(stream.device_kind))};
    }
    const std::lock_guard lock(connect_mutex_);
    if (device_.load(std::memory_order_acquire) == nullptr) {
      if (Status connected = ConnectLocked(op, stream.device_kind, stream.device_index); !connected)
        return std::move(connected).error();
    }
    route = device_.load(std::memory_order_acquire);
  }
  if (stream.device_kind == route->device_kind && stream.device_index == route->device_index) return route;
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("{} {} {}, and '{}' is connected to {} {}; a process uses one device for "
                           "each communicator",
                           wish, comm::KindName(stream.device_kind), stream.device_index, making_.name,
                           comm::KindName(route->device_kind), route->device_index)};
}

dtrun_status dtrun_comm::Connect(std::int32_t kind, std::int32_t index, dtrun_error* err) {
  dtrun_stream any;
  DTRUN_INIT(any);
  any.device_kind = kind;
  any.device_index = index;
  Result<Route*> route = RouteFor(any, "dtrun_comm_connect asks for", nullptr);
  return route ? DTRUN_OK : route.error().CopyTo(err);
}

Result<std::unique_ptr<Route>> dtrun_comm::FindDevice(std::int32_t kind, std::int32_t index) {
  Result<comm::Carrier> carrier = making_.devices->CarrierOf(kind);
  if (!carrier && carrier.error().code == DTRUN_UNSUPPORTED) return std::move(carrier).error();
  Result<const Device*> device = making_.devices->Plugin(kind);
  if (!device) return std::move(device).error();
  std::int32_t count = 0;
  if (Status counted = Call(**device, "counting its devices",
                            [&](const dtrun_device& table, dtrun_instance* self, dtrun_error* error) {
                              return table.count(self, &count, error);
                            });
      !counted) {
    return std::move(counted).error();
  }
  if (index < 0 || index >= count) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("there is no {} {}: this process has {} of them, from 0{}; {}",
                             comm::KindName(kind), index, count, Visible(kind),
                             count == 0 ? "make one visible to it" : "use the index of one of these")};
  }
  if (!carrier) return std::move(carrier).error();
  auto route = std::make_unique<Route>();
  route->carrier = *std::move(carrier);
  route->device_kind = kind;
  route->device_index = index;
  if (Status asked = comm::Ask(making_, *route); !asked) return std::move(asked).error();
  device_plugin_ = *device;
  return route;
}

// Other ranks may be in another call, and would never come: they are compared with this one from now on.
Status dtrun_comm::ConnectLocked(const dtrun_op* op, std::int32_t kind, std::int32_t index) {
  if (Status usable = Usable(); !usable) return usable;
  if (making_.devices == nullptr) return NoDevices(making_.name, kind);
  const std::uint64_t number = Announce(op, kind);
  Status connected = ConnectDevice(kind, index);
  if (ring_ != nullptr && !failed_.load(std::memory_order_acquire)) dtrun::contract::End(*ring_, number);
  return connected;
}

std::uint64_t dtrun_comm::Announce(const dtrun_op* op, std::int32_t kind) {
  if (ring_ != nullptr) (void)making_.devices->Plugin(kind);  // which names the kind
  sdk::Signature signature;
  dtrun_op call = op == nullptr ? dtrun_op{} : *op;
  if (op != nullptr) ClearUnused(call);
  if (op != nullptr && comm::Check(call, host_.scope).ok()) {  // a wrong one is refused later
    call.count = comm::Elements(call, host_.scope);
    signature = sdk::SignatureOf(call, making_.size);
  }
  signature.kind |= dtrun::contract::kConnects;
  signature.device_kind = static_cast<std::uint8_t>(kind);
  const std::lock_guard lock(enqueue_mutex_);
  ++sequence_;
  if (ring_ != nullptr) {
    dtrun::contract::NameDevice(*ring_, comm::KindName(kind));
    dtrun::contract::Begin(*ring_, sequence_, signature);
  }
  return sequence_;
}

// A rank that refuses leaves all as they were. What fails later leaves the communicator failed, as a failed
// operation would.
Status dtrun_comm::ConnectDevice(std::int32_t kind, std::int32_t index) {
  Result<std::unique_ptr<Route>> found = FindDevice(kind, index);
  const std::string device = comm::KindName(kind);
  const Result<std::string> mine =
      found ? Result<std::string>(fmt::format("{} memory by {}", device, (*found)->carrier.name))
            : found.error();
  Status made = comm::Agree(making_, ++connects_, device, mine, [this] { return Usable(); });
  if (!made && (!found || made.error().code == DTRUN_REMOTE_FAILURE)) {
    if (found && making_.report) making_.report(made.error().peer, made.error().text);
    return made;
  }
  if (made) made = comm::Open(making_, making_.device_kv, **found);
  if (!made) {
    Record(made.error(), PluginError());
    AbortBackend(made.error().text);
    return made;
  }
  device_route_ = *std::move(found);
  device_.store(device_route_.get(), std::memory_order_release);
  if (failed_.load(std::memory_order_acquire))
    AbortBackend(failure_.message);  // meanwhile, by another thread
  return {};
}

Result<std::string_view> dtrun_comm::RouteOf(std::int32_t kind) {
  if (kind == DTRUN_DEVICE_HOST) return std::string_view(making_.backend_name);
  if (Status known = CheckKind(kind); !known) return std::move(known).error();
  if (const Route* route = device_.load(std::memory_order_acquire);
      route != nullptr && route->device_kind == kind)
    return std::string_view(route->carrier.name);
  if (making_.devices == nullptr) return NoDevices(making_.name, kind);
  Result<comm::Carrier> carrier = making_.devices->CarrierOf(kind);
  if (!carrier) return std::move(carrier).error();
  const std::lock_guard lock(memory_mutex_);
  return std::string_view(*route_names_.insert(carrier->name).first);
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
    // An index of -1 is the host's, or memory that the device's library moves between the two.
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
      fmt::format("{}: the stream is being captured into a graph, whose replays have no handle; give NULL "
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
    if (one->route == nullptr) continue;
    Route& route = *one->route;
    if (!route.OfDevice()) {
      return Error{DTRUN_INVALID_ARGUMENT,
                   fmt::format("dtrun_work_wait_on: {} moves host memory, which no stream waits for; use "
                               "dtrun_work_wait",
                               comm::Describe(one->op, making_.name))}
          .CopyTo(err);
    }
    if (one->request == nullptr) continue;
    if (Result<Route*> same = RouteFor(stream, "dtrun_work_wait_on: the stream is of", nullptr); !same)
      return same.error().CopyTo(err);
    if (route.carrier.table.req_wait_stream != nullptr) {
      PluginError cause;
      const std::lock_guard lock(enqueue_mutex_);  // [comm-serial]
      const dtrun_status status = route.carrier.table.req_wait_stream(one->request, &stream, &cause);
      if (status != DTRUN_OK) return Fail(one->op, status, cause, err);
    }
    one->ordered = true;
  }
  return DTRUN_OK;
}

dtrun_status dtrun_comm::WaitForHosts(dtrun_work& group, dtrun_error* err) {
  for (dtrun_work* one = &group; one != nullptr; one = one->together) {
    if (one->route != nullptr && one->route->OfDevice()) {
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
  Result<Route*> opened = Opened(kind, index, "dtrun_alloc_on");
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
                     fmt::format("dtrun_alloc_on of {} bytes on {} {}", bytes, comm::KindName(kind), index))
        .CopyTo(err);
  }
  return Keep(memory, {true, own, params}, out);
}

Result<Route*> dtrun_comm::Opened(std::int32_t kind, std::int32_t index, const char* call) {
  if (Status known = CheckKind(kind); !known) {
    return Error{known.error().code, fmt::format("{}: {}", call, known.error().text)};
  }
  if (device_.load(std::memory_order_acquire) == nullptr) {
    return Error{
        DTRUN_FAILED_PRECONDITION,
        fmt::format("{}: '{}' is not connected to a device yet; call dtrun_comm_connect on all ranks first",
                    call, making_.name)};
  }
  dtrun_stream any;
  DTRUN_INIT(any);
  any.device_kind = kind;
  any.device_index = index;
  return RouteFor(any, std::string(call) + " asks for", nullptr);
}

dtrun_status dtrun_comm::CreateStream(const dtrun_stream_params& params, std::int32_t kind, dtrun_stream* out,
                                      dtrun_error* err) {
  if (Result<Route*> opened = Opened(kind, params.device_index, "dtrun_stream_create"); !opened)
    return opened.error().CopyTo(err);
  dtrun_stream made;
  DTRUN_INIT(made);
  Status created = Call(*device_plugin_, "making a stream",
                        [&](const dtrun_device& table, dtrun_instance* self, dtrun_error* error) {
                          return table.stream_create(self, &params, &made, error);
                        });
  if (!created) return created.error().CopyTo(err);
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
