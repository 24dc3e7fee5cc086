// Memory for buffers, from the backend or else aligned host memory; and registration of the program's memory.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <iterator>

#include "core/base/plugin_error.h"
#include "core/comm/communicator.h"

using dtrun::Error;
using dtrun::Explained;
using dtrun::PluginError;
using dtrun::Result;
using dtrun::comm::Route;

namespace {

constexpr std::uint64_t kAlignment = 64;

}  // namespace

dtrun_status dtrun_comm::Allocate(std::uint64_t bytes, void** out, dtrun_error* err) {
  if (bytes > static_cast<std::uint64_t>(PTRDIFF_MAX) - kAlignment) {
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("alloc: {} bytes do not fit into memory", bytes)}.CopyTo(
        err);
  }
  const std::uint64_t rounded = (bytes / kAlignment + (bytes % kAlignment != 0 || bytes == 0)) * kAlignment;
  void* memory = nullptr;
  dtrun_mem_params params;
  DTRUN_INIT(params);
  params.bytes = rounded;
  params.alignment = kAlignment;
  params.device_kind = DTRUN_DEVICE_HOST;
  params.device_index = -1;
  const auto mem_alloc = host_.carrier.table.mem_alloc;
  if (mem_alloc != nullptr) {
    if (failed_.load(std::memory_order_acquire)) return FirstFailure(err);
    PluginError cause;
    if (const dtrun_status status = mem_alloc(host_.comm, &params, &memory, &cause); status != DTRUN_OK) {
      return Explained(status, cause, fmt::format("alloc of {} bytes on '{}'", bytes, making_.name))
          .CopyTo(err);
    }
  } else {
    memory = std::aligned_alloc(kAlignment, rounded);
    if (memory == nullptr) {
      return Error{DTRUN_OUT_OF_MEMORY, fmt::format("alloc: no memory for {} bytes", bytes)}.CopyTo(err);
    }
    std::memset(memory, 0, rounded);
  }
  return Keep(memory, {false, mem_alloc != nullptr, params}, out);
}

dtrun_status dtrun_comm::Keep(void* memory, const Block& block, void** out) {
  const std::lock_guard lock(memory_mutex_);
  memory_.emplace(memory, block);
  *out = memory;
  return DTRUN_OK;
}

void dtrun_comm::Free(void* memory) {
  Block block;
  {
    const std::lock_guard lock(memory_mutex_);
    const auto found = memory_.find(memory);
    if (found == memory_.end()) return;
    block = found->second;
    memory_.erase(found);
  }
  const dtrun::comm::Route& route = block.of_device && block.of_backend ? *device_.load() : host_;
  if (block.of_backend) {
    route.carrier.table.mem_free(route.comm, memory);
  } else if (block.of_device) {
    device_plugin_->table->mem_free(device_plugin_->instance, &block.params, memory);
  } else {
    std::free(memory);
  }
}

dtrun_status dtrun_comm::Register(void* memory, std::uint64_t bytes, std::int32_t kind, std::int32_t index,
                                  dtrun_error* err) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (memory == nullptr || bytes == 0 || bytes > UINTPTR_MAX - begin) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("register: {} bytes at {}; expected memory of at least one byte", bytes, memory)}
        .CopyTo(err);
  }
  const Route* route = &host_;
  if (kind != DTRUN_DEVICE_HOST) {
    Result<Route*> opened = Opened(kind, index, "register");
    if (!opened) return opened.error().CopyTo(err);
    route = *opened;
  }
  if (failed_.load(std::memory_order_acquire)) return FirstFailure(err);
  {
    const std::lock_guard lock(memory_mutex_);
    const auto after = registered_.lower_bound(begin + bytes);
    if (after != registered_.begin() && std::prev(after)->second.end > begin) {
      const auto& [other, known] = *std::prev(after);
      return Error{DTRUN_INVALID_ARGUMENT,
                   fmt::format("register: {} bytes at {} overlap the {} bytes at {:#x} that '{}' has "
                               "registered; call deregister first",
                               bytes, memory, known.end - other, other, making_.name)}
          .CopyTo(err);
    }
    registered_.emplace(begin, Registration{begin + bytes, route, false});
  }
  const auto mem_register = route->carrier.table.mem_register;
  if (mem_register == nullptr) return DTRUN_OK;
  dtrun_mem_params params;
  DTRUN_INIT(params);
  params.bytes = bytes;
  params.device_kind = kind;
  params.device_index = kind == DTRUN_DEVICE_HOST ? -1 : index;
  PluginError cause;
  const dtrun_status status = mem_register(route->comm, &params, memory, &cause);
  const std::lock_guard lock(memory_mutex_);
  if (status == DTRUN_OK) {
    registered_.at(begin).ready = true;
    return DTRUN_OK;
  }
  registered_.erase(begin);
  return Explained(status, cause,
                   fmt::format("register of {} bytes at {} on '{}'", bytes, memory, making_.name))
      .CopyTo(err);
}

void dtrun_comm::Deregister(void* memory) {
  Registration registration;
  {
    const std::lock_guard lock(memory_mutex_);
    const auto found = registered_.find(reinterpret_cast<std::uintptr_t>(memory));
    if (found == registered_.end()) return;
    registration = found->second;
    registered_.erase(found);
  }
  const Route& route = *registration.route;
  if (registration.ready) route.carrier.table.mem_deregister(route.comm, memory);
}
