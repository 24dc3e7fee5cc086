// Buffers that every rank of the host can read and write in place: the memory of `mem_alloc`.
//
// The process-wide registry knows this process's buffers. PeerRegions belongs to one communicator and keeps
// mappings of the others' buffers. It is not notified when a peer frees a buffer: when a descriptor returns
// with another id, it drops the old mapping. So a rank keeps at most as many mappings of a peer as that peer
// ever had descriptors at a time. Registry: any thread. PeerRegions: the thread that runs calls.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "core/comm/shm/memory.h"

namespace dtrun::shm {

// A place in a region that another process of the host can find. Part of a Post.
struct RegionRef {
  std::uint32_t id = 0;  // never used twice by one process; 0: none
  std::int32_t fd = -1;
  std::uint64_t offset = 0;  // bytes
};

// Zeroed, page-aligned. Throws sdk::Failure.
void* AllocateRegion(std::size_t bytes);
// Frees memory of AllocateRegion; null is allowed.
void ReleaseRegion(void* memory);
// The place of [pointer, pointer + bytes), if it lies within one region.
std::optional<RegionRef> FindRegion(const void* pointer, std::size_t bytes);

class PeerRegions {
 public:
  // The same place, mapped here, with `bytes` behind it. Throws sdk::Failure. The pointer stays valid until
  // the peer frees the buffer.
  std::byte* Resolve(int rank, pid_t pid, const RegionRef& ref, std::size_t bytes);

 private:
  struct Mapped {
    std::uint32_t id = 0;
    Memory memory;
  };
  std::map<std::pair<int, std::int32_t>, Mapped> mapped_;  // by rank and its descriptor
};

}  // namespace dtrun::shm
