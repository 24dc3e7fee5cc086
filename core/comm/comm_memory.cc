#include "core/comm/comm_memory.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <iterator>

#include "core/base/error.h"

namespace dtrun::comm {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kDeviceAlignment = 256;

// Takes the entry of `key` out of `map`; empty: there is none.
template <class Map>
typename Map::node_type Take(std::mutex& mutex, Map& map, const typename Map::key_type& key) {
  const std::lock_guard lock(mutex);
  return map.extract(key);
}

}  // namespace

CommMemory::~CommMemory() {
  while (!registered_.empty()) {
    const std::uintptr_t first = registered_.begin()->first;
    Deregister(reinterpret_cast<void*>(first));  // NOLINT(performance-no-int-to-ptr)
  }
  while (!blocks_.empty()) Free(blocks_.begin()->first);
}

Result<void*> CommMemory::Allocate(std::uint64_t bytes) {
  if (bytes > static_cast<std::uint64_t>(PTRDIFF_MAX) - kAlignment) {
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("alloc: {} bytes do not fit into memory", bytes)};
  }
  const std::uint64_t rounded = (bytes / kAlignment + (bytes % kAlignment != 0 || bytes == 0)) * kAlignment;
  void* memory = nullptr;
  dtrun_mem_params params;
  DTRUN_INIT(params);
  params.bytes = rounded;
  params.alignment = kAlignment;
  params.device_kind = DTRUN_DEVICE_HOST;
  params.device_index = -1;
  const auto mem_alloc = state_.host.carrier.table.mem_alloc;
  if (mem_alloc != nullptr) {
    if (Status usable = state_.Usable(); !usable) return std::move(usable).error();
    const Status allocated = state_.Call(
        state_.host, [&](dtrun_error* e) { return mem_alloc(state_.host.comm, &params, &memory, e); },
        "alloc of {} bytes on '{}'", bytes, state_.making.name);
    if (!allocated) return allocated.error();
  } else {
    memory = std::aligned_alloc(kAlignment, rounded);
    if (memory == nullptr) {
      return Error{DTRUN_OUT_OF_MEMORY, fmt::format("alloc: no memory for {} bytes", bytes)};
    }
    std::memset(memory, 0, rounded);
  }
  return Keep(memory, {false, mem_alloc != nullptr, params});
}

Result<void*> CommMemory::AllocateOn(std::uint64_t bytes, std::int32_t kind, std::int32_t index) {
  if (kind == DTRUN_DEVICE_HOST) return Allocate(bytes);
  Result<Route*> opened = devices_.Opened(kind, index, "alloc_on");
  if (!opened) return std::move(opened).error();
  const Route& route = **opened;
  dtrun_mem_params params;
  DTRUN_INIT(params);
  params.bytes = std::max<std::uint64_t>(bytes, 1);
  params.alignment = kDeviceAlignment;
  params.device_kind = kind;
  params.device_index = index;
  void* memory = nullptr;
  const bool own = route.carrier.table.mem_alloc != nullptr;
  const auto allocate = [&](dtrun_error* e) {
    return own ? route.carrier.table.mem_alloc(route.comm, &params, &memory, e)
               : devices_.plugin().table->mem_alloc(devices_.plugin().instance, &params, &memory, e);
  };
  const Status allocated =
      state_.Call(route, allocate, "alloc_on of {} bytes on {} {}", bytes, KindName(kind), index);
  if (!allocated) return allocated.error();
  return Keep(memory, {true, own, params});
}

void* CommMemory::Keep(void* memory, const Block& block) {
  const std::lock_guard lock(mutex_);
  blocks_.emplace(memory, block);
  return memory;
}

void CommMemory::Free(void* memory) {
  const auto taken = Take(mutex_, blocks_, memory);
  if (!taken) return;
  const Block& block = taken.mapped();
  const Route& route = block.of_device && block.of_backend ? *state_.device() : state_.host;
  const OperationCall call = state_.Enter(route);
  if (block.of_backend) {
    Guard(route.carrier.name, "in its mem_free", state_.making.report,
          [&] { route.carrier.table.mem_free(route.comm, memory); });
  } else if (block.of_device) {
    devices_.plugin().table->mem_free(devices_.plugin().instance, &block.params, memory);
  } else {
    std::free(memory);
  }
}

Status CommMemory::Register(void* memory, std::uint64_t bytes, std::int32_t kind, std::int32_t index) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (memory == nullptr || bytes == 0 || bytes > UINTPTR_MAX - begin) {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("register: {} bytes at {}; expected memory of at least one byte", bytes, memory)};
  }
  const Route* route = &state_.host;
  if (kind != DTRUN_DEVICE_HOST) {
    Result<Route*> opened = devices_.Opened(kind, index, "register");
    if (!opened) return std::move(opened).error();
    route = *opened;
  }
  if (Status usable = state_.Usable(); !usable) return usable;
  {
    const std::lock_guard lock(mutex_);
    const auto after = registered_.lower_bound(begin + bytes);
    if (after != registered_.begin() && std::prev(after)->second.end > begin) {
      const auto& [other, known] = *std::prev(after);
      return Error{DTRUN_INVALID_ARGUMENT,
                   fmt::format("register: {} bytes at {} overlap the {} bytes at {:#x} that '{}' has "
                               "registered; call deregister first",
                               bytes, memory, known.end - other, other, state_.making.name)};
    }
    registered_.emplace(begin, Registration{begin + bytes, route, false});
  }
  const auto mem_register = route->carrier.table.mem_register;
  if (mem_register == nullptr) return {};
  dtrun_mem_params params;
  DTRUN_INIT(params);
  params.bytes = bytes;
  params.device_kind = kind;
  params.device_index = kind == DTRUN_DEVICE_HOST ? -1 : index;
  Status done = state_.Call(
      *route, [&](dtrun_error* e) { return mem_register(route->comm, &params, memory, e); },
      "register of {} bytes at {} on '{}'", bytes, memory, state_.making.name);
  const std::lock_guard lock(mutex_);
  if (done) {
    registered_.at(begin).ready = true;
  } else {
    registered_.erase(begin);
  }
  return done;
}

void CommMemory::Deregister(void* memory) {
  const auto taken = Take(mutex_, registered_, reinterpret_cast<std::uintptr_t>(memory));
  if (!taken) return;
  const Registration& registration = taken.mapped();
  const Route& route = *registration.route;
  const OperationCall call = state_.Enter(route);
  if (!registration.ready) return;
  Guard(route.carrier.name, "in its mem_deregister", state_.making.report,
        [&] { route.carrier.table.mem_deregister(route.comm, memory); });
}

}  // namespace dtrun::comm
