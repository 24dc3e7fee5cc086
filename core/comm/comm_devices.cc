#include "core/comm/comm_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/error.h"
#include "core/comm/agreement.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {
namespace {

constexpr std::int32_t kLastKind = 62;  // types.h

// The environment's setting of visible devices, if any: numbers, or UUIDs of GPUs and slices.
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
        "device_kind is DTRUN_DEVICE_HOST, but host memory needs no connection and no stream; expected a "
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
  const std::string place = fmt::format("{} {}", KindName(memory.device_kind), memory.device_index);
  const std::string device = fmt::format("{} {}", KindName(route.device_kind), route.device_index);
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

Result<Route*> CommDevices::RouteFor(std::int32_t kind, std::int32_t index, const std::string& wish,
                                     const dtrun_op* op) {
  Route* route = state_.device();
  if (route == nullptr) {
    if (Status known = CheckKind(kind); !known) return std::move(known).error();
    if (op != nullptr && !sdk::IsCollective(op->kind) && state_.making.size > 1) {
      return Error{
          DTRUN_FAILED_PRECONDITION,
          fmt::format("{}: the ranks of '{}' are not connected by {} yet, and a message concerns two of "
                      "them; call connect on all first",
                      sdk::OperationName(op->kind), state_.making.name, KindName(kind))};
    }
    const std::lock_guard lock(connect_mutex_);
    if (state_.device() == nullptr) {
      if (Status connected = ConnectLocked(op, kind, index); !connected) return std::move(connected).error();
    }
    route = state_.device();
  }
  if (kind == route->device_kind && index == route->device_index) return route;
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("{} {} {}, and '{}' is connected to {} {}; a process uses one device for "
                           "each communicator",
                           wish, KindName(kind), index, state_.making.name, KindName(route->device_kind),
                           route->device_index)};
}

Status CommDevices::Connect(std::int32_t kind, std::int32_t index) {
  const Result<Route*> route = RouteFor(kind, index, "connect asks for", nullptr);
  return route ? Status() : route.error();
}

Result<std::unique_ptr<Route>> CommDevices::FindDevice(std::int32_t kind, std::int32_t index) {
  Result<Carrier> carrier = state_.making.devices->CarrierOf(kind);
  if (!carrier && carrier.error().code == DTRUN_UNSUPPORTED) return std::move(carrier).error();
  Result<const Device*> device = state_.making.devices->Plugin(kind);
  if (!device) return std::move(device).error();
  std::int32_t count = 0;
  PluginError error;
  if (const dtrun_status counted = (*device)->table->count((*device)->instance, &count, &error);
      counted != DTRUN_OK) {
    return Explained(counted, error, fmt::format("device '{}', counting its devices", (*device)->name));
  }
  if (index < 0 || index >= count) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("there is no {} {}: this process has {} of them, from 0{}; {}", KindName(kind),
                             index, count, Visible(kind),
                             count == 0 ? "make one visible to it" : "use the index of one of these")};
  }
  if (!carrier) return std::move(carrier).error();
  auto route = std::make_unique<Route>();
  route->carrier = *std::move(carrier);
  route->device_kind = kind;
  route->device_index = index;
  if (Status asked = Ask(state_.making, *route); !asked) return std::move(asked).error();
  plugin_ = *device;
  return route;
}

// Other ranks may be in another call and would never arrive: from now on their calls are compared with this
// one.
Status CommDevices::ConnectLocked(const dtrun_op* op, std::int32_t kind, std::int32_t index) {
  if (Status usable = state_.Usable(); !usable) return usable;
  if (state_.making.devices == nullptr) return NoDevices(state_.making.name, kind);
  const std::uint64_t number = Announce(op, kind);
  Status connected = ConnectDevice(kind, index);
  if (!state_.failed()) state_.End(number);
  return connected;
}

std::uint64_t CommDevices::Announce(const dtrun_op* op, std::int32_t kind) {
  if (state_.records()) (void)state_.making.devices->Plugin(kind);  // names the kind
  sdk::Signature signature;
  dtrun_op call = op == nullptr ? dtrun_op{} : *op;
  if (op != nullptr) ClearUnused(call, state_.host.scope);
  if (op != nullptr && Check(call, state_.host.scope).ok()) {  // a wrong one is rejected later
    call.count = Elements(call, state_.host.scope);
    signature = sdk::SignatureOf(call, state_.making.size);
  }
  signature.kind |= contract::kConnects;
  signature.device_kind = static_cast<std::uint8_t>(kind);
  return state_.Announce(signature, KindName(kind));
}

// If a rank refuses, all stay as they were. A later failure fails the communicator, as a failed operation
// would.
Status CommDevices::ConnectDevice(std::int32_t kind, std::int32_t index) {
  Result<std::unique_ptr<Route>> found = FindDevice(kind, index);
  const std::string device = KindName(kind);
  const Result<std::string> mine =
      found ? Result<std::string>(fmt::format("{} memory by {}", device, (*found)->carrier.name))
            : found.error();
  Status made = Agree(state_.making, ++connects_, device, mine, [this] { return state_.Usable(); });
  if (!made && (!found || made.error().code == DTRUN_REMOTE_FAILURE)) {
    if (found && state_.making.report) state_.making.report(made.error());
    return made;
  }
  if (made) made = Open(state_.making, state_.making.device_kv, **found);
  if (!made) {
    state_.Record(made.error());
    state_.Abort(made.error().text);
    return made;
  }
  state_.SetDevice(*std::move(found));
  return {};
}

Result<std::string_view> CommDevices::RouteOf(std::int32_t kind) {
  if (kind == DTRUN_DEVICE_HOST) return std::string_view(state_.making.backend_name);
  if (Status known = CheckKind(kind); !known) return std::move(known).error();
  if (const Route* route = OpenRoute(kind)) return std::string_view(route->carrier.name);
  if (state_.making.devices == nullptr) return NoDevices(state_.making.name, kind);
  Result<Carrier> carrier = state_.making.devices->CarrierOf(kind);
  if (!carrier) return std::move(carrier).error();
  const std::lock_guard lock(mutex_);
  return std::string_view(*route_names_.insert(carrier->name).first);
}

bool CommDevices::OrdersOnHost(std::int32_t kind) {
  if (const Route* route = OpenRoute(kind)) return route->carrier.orders_on_host;
  if (!CheckKind(kind) || state_.making.devices == nullptr) return false;
  const Result<Carrier> carrier = state_.making.devices->CarrierOf(kind);
  return carrier && carrier->orders_on_host;
}

Result<Route*> CommDevices::Opened(std::int32_t kind, std::int32_t index, const char* call) {
  if (Status known = CheckKind(kind); !known) {
    return Error{known.error().code, fmt::format("{}: {}", call, known.error().text)};
  }
  if (state_.device() == nullptr) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("{}: '{}' is not connected to a device yet; call connect on all ranks first",
                             call, state_.making.name)};
  }
  return RouteFor(kind, index, std::string(call) + " asks for", nullptr);
}

Result<dtrun_memory> CommDevices::MemoryOf(const dtrun_op& op, const void* buffer, const char* which) const {
  dtrun_memory memory;
  DTRUN_INIT(memory);
  PluginError error;
  const Device& device = *plugin_;
  const dtrun_status status = device.table->memory_of(device.instance, buffer, &memory, &error);
  if (status == DTRUN_OK) return memory;
  return Answered(state_.making, status, error,
                  fmt::format("{}: the {} buffer at {}", sdk::OperationName(op.kind), which, buffer));
}

Status CommDevices::CheckMemory(const dtrun_op& op, const Route& route) const {
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

Result<bool> CommDevices::Captures(const dtrun_op& op, const dtrun_stream& stream, const Route& route,
                                   bool wants_work) const {
  const Device& device = *plugin_;
  if (device.table->stream_capturing == nullptr) return false;
  std::int32_t capturing = 0;
  PluginError error;
  if (const dtrun_status status =
          device.table->stream_capturing(device.instance, &stream, &capturing, &error);
      status != DTRUN_OK) {
    return Answered(state_.making, status, error, fmt::format("{}: the stream", sdk::OperationName(op.kind)));
  }
  if (capturing == 0) return false;
  if ((route.scope.caps.features & DTRUN_CAP_CAPTURE) == 0) {
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

Result<bool> CommDevices::Prepare(const Route& route, const dtrun_op& op, const dtrun_stream* stream,
                                  bool wants_work) const {
  if (Status memory = CheckMemory(op, route); !memory) return std::move(memory).error();
  return stream == nullptr ? Result<bool>(false) : Captures(op, *stream, route, wants_work);
}

Result<dtrun_stream> CommDevices::CreateStream(const dtrun_stream_params& params, std::int32_t kind) {
  if (Result<Route*> opened = Opened(kind, params.device_index, "stream_create"); !opened)
    return std::move(opened).error();
  dtrun_stream made;
  DTRUN_INIT(made);
  const Device& device = *plugin_;
  PluginError cause;
  if (const dtrun_status status = device.table->stream_create(device.instance, &params, &made, &cause);
      status != DTRUN_OK) {
    return Answered(state_.making, status, cause, fmt::format("device '{}', making a stream", device.name));
  }
  const std::lock_guard lock(mutex_);
  streams_.push_back(made);
  return made;
}

void CommDevices::DestroyStreams() {
  while (!streams_.empty()) DestroyStream(dtrun_stream(streams_.back()));
}

void CommDevices::DestroyStream(const dtrun_stream& stream) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(streams_.begin(), streams_.end(),
                                    [&](const dtrun_stream& one) { return one.native == stream.native; });
    if (found == streams_.end()) return;
    streams_.erase(found);
  }
  plugin_->table->stream_destroy(plugin_->instance, &stream);
}

}  // namespace dtrun::comm
