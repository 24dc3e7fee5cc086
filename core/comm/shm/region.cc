#include "core/comm/shm/region.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>

#include "dtrun/plugin.hpp"

namespace dtrun::shm {
namespace {

struct Region {
  std::uint32_t id = 0;
  Memory memory;
};

struct Registry {
  std::mutex mutex;
  std::uint32_t last_id = 0;
  std::map<const std::byte*, Region, std::greater<>> regions;  // by first byte, last first
};

// Never destroyed: programs may free their buffers at any time.
Registry& TheRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

}  // namespace

void* AllocateRegion(std::size_t bytes) {
  Memory memory = Memory::Create("dtrun-buffer", std::max<std::size_t>(bytes, 1));
  std::byte* const base = memory.data();
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.regions[base] = Region{++registry.last_id, std::move(memory)};
  return base;
}

void ReleaseRegion(void* memory) {
  if (memory == nullptr) return;
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.regions.find(static_cast<std::byte*>(memory));
  if (found == registry.regions.end()) {
    throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "the pointer to free is not one that alloc gave");
  }
  // Peers may keep it mapped; their mappings must hold no memory.
  found->second.memory.Drop();
  registry.regions.erase(found);
}

std::optional<RegionRef> FindRegion(const void* pointer, std::size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(pointer);
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.regions.lower_bound(first);  // the last that begins at or before it
  if (found == registry.regions.end()) return std::nullopt;
  const Memory& memory = found->second.memory;
  const auto offset = static_cast<std::size_t>(first - memory.data());
  if (offset > memory.bytes() || bytes > memory.bytes() - offset) return std::nullopt;
  return RegionRef{found->second.id, memory.fd(), offset};
}

std::byte* PeerRegions::Resolve(int rank, pid_t pid, const RegionRef& ref, std::size_t bytes) {
  Mapped& mapped = mapped_[{rank, ref.fd}];
  if (mapped.id != ref.id) {
    mapped = {};  // the peer has freed the buffer of this descriptor
    mapped.memory = Memory::Open(pid, ref.fd);
    mapped.memory.CloseFd();
    mapped.id = ref.id;
  }
  const std::size_t size = mapped.memory.bytes();
  if (ref.offset > size || bytes > size - ref.offset) {
    throw sdk::Failure(DTRUN_INTERNAL,
                       "rank " + std::to_string(rank) + " names " + std::to_string(bytes) + " bytes at " +
                           std::to_string(ref.offset) + " of a buffer of " + std::to_string(size) +
                           " bytes: its memory was overwritten",
                       rank);
  }
  return mapped.memory.data() + ref.offset;
}

}  // namespace dtrun::shm
