// Connects a communicator to devices: opens its second route.
//
// All ranks make the first call that needs the route, which opens it; then it stays open.
#include <fmt/format.h>

#include <cstdlib>

#include "core/base/plugin_error.h"
#include "core/comm/agreement.h"
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

}  // namespace

Result<Route*> dtrun_comm::RouteFor(const dtrun_stream& stream, const std::string& wish, const dtrun_op* op) {
  Route* route = device_.load(std::memory_order_acquire);
  if (route == nullptr) {
    if (Status kind = CheckKind(stream.device_kind); !kind) return std::move(kind).error();
    if (op != nullptr && !sdk::IsCollective(op->kind) && making_.size > 1) {
      return Error{
          DTRUN_FAILED_PRECONDITION,
          fmt::format("{}: the ranks of '{}' are not connected by {} yet, and a message concerns two of "
                      "them; call connect on all first",
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
  Result<Route*> route = RouteFor(any, "connect asks for", nullptr);
  return route ? DTRUN_OK : route.error().CopyTo(err);
}

Result<std::unique_ptr<Route>> dtrun_comm::FindDevice(std::int32_t kind, std::int32_t index) {
  Result<comm::Carrier> carrier = making_.devices->CarrierOf(kind);
  if (!carrier && carrier.error().code == DTRUN_UNSUPPORTED) return std::move(carrier).error();
  Result<const Device*> device = making_.devices->Plugin(kind);
  if (!device) return std::move(device).error();
  std::int32_t count = 0;
  PluginError error;
  if (const dtrun_status counted = (*device)->table->count((*device)->instance, &count, &error);
      counted != DTRUN_OK) {
    return Explained(counted, error, fmt::format("device '{}', counting its devices", (*device)->name));
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

// Other ranks may be in another call and would never arrive: from now on their calls are compared with this
// one.
Status dtrun_comm::ConnectLocked(const dtrun_op* op, std::int32_t kind, std::int32_t index) {
  if (Status usable = Usable(); !usable) return usable;
  if (making_.devices == nullptr) return NoDevices(making_.name, kind);
  const std::uint64_t number = Announce(op, kind);
  Status connected = ConnectDevice(kind, index);
  if (ring_ != nullptr && !failed_.load(std::memory_order_acquire)) dtrun::contract::End(*ring_, number);
  return connected;
}

std::uint64_t dtrun_comm::Announce(const dtrun_op* op, std::int32_t kind) {
  if (ring_ != nullptr) (void)making_.devices->Plugin(kind);  // names the kind
  sdk::Signature signature;
  dtrun_op call = op == nullptr ? dtrun_op{} : *op;
  if (op != nullptr) ClearUnused(call);
  if (op != nullptr && comm::Check(call, host_.scope).ok()) {  // a wrong one is rejected later
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

// If a rank refuses, all stay as they were. A later failure fails the communicator, as a failed operation
// would.
Status dtrun_comm::ConnectDevice(std::int32_t kind, std::int32_t index) {
  Result<std::unique_ptr<Route>> found = FindDevice(kind, index);
  const std::string device = comm::KindName(kind);
  const Result<std::string> mine =
      found ? Result<std::string>(fmt::format("{} memory by {}", device, (*found)->carrier.name))
            : found.error();
  Status made = comm::Agree(making_, ++connects_, device, mine, [this] { return Usable(); });
  if (!made && (!found || made.error().code == DTRUN_REMOTE_FAILURE)) {
    if (found && making_.report) making_.report(made.error());
    return made;
  }
  if (made) made = comm::Open(making_, making_.device_kv, **found);
  if (!made) {
    Record(made.error());
    AbortBackend(made.error().text);
    return made;
  }
  device_route_ = *std::move(found);
  device_.store(device_route_.get(), std::memory_order_release);
  if (failed_.load(std::memory_order_acquire)) AbortBackend(failure_.text);  // meanwhile, by another thread
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

bool dtrun_comm::OrdersOnHost(std::int32_t kind) {
  if (const Route* route = device_.load(std::memory_order_acquire);
      route != nullptr && route->device_kind == kind)
    return route->carrier.orders_on_host;
  if (!CheckKind(kind) || making_.devices == nullptr) return false;
  const Result<comm::Carrier> carrier = making_.devices->CarrierOf(kind);
  return carrier && carrier->orders_on_host;
}

Result<Route*> dtrun_comm::Opened(std::int32_t kind, std::int32_t index, const char* call) {
  if (Status known = CheckKind(kind); !known) {
    return Error{known.error().code, fmt::format("{}: {}", call, known.error().text)};
  }
  if (device_.load(std::memory_order_acquire) == nullptr) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("{}: '{}' is not connected to a device yet; call connect on all ranks first",
                             call, making_.name)};
  }
  dtrun_stream any;
  DTRUN_INIT(any);
  any.device_kind = kind;
  any.device_index = index;
  return RouteFor(any, std::string(call) + " asks for", nullptr);
}
