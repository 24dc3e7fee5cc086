#include "registrations.h"

#include <iterator>

namespace dtrun::ucx_plugin {

Registrations::~Registrations() {
  for (const auto& [begin, piece] : pieces_) context_.library().mem_unmap(context_.get(), piece.handle);
}

void Registrations::Add(void* memory, std::size_t bytes, ucs_memory_type_t type) {
  ucp_mem_map_params_t params{};
  params.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.address = memory;
  params.length = bytes;
  params.memory_type = type;
  Piece piece;
  context_.library().Check(context_.library().mem_map(context_.get(), &params, &piece.handle),
                           "register " + std::to_string(bytes) +
                               " bytes with UCX (a limit on locked memory is raised by 'ulimit -l')");
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  piece.end = begin + bytes;
  const std::lock_guard lock(mutex_);
  pieces_.emplace(begin, piece);
  any_.store(true, std::memory_order_release);
}

void Registrations::Remove(void* memory) {
  Piece piece;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pieces_.find(reinterpret_cast<std::uintptr_t>(memory));
    if (found == pieces_.end()) return;
    piece = found->second;
    pieces_.erase(found);
    any_.store(!pieces_.empty(), std::memory_order_release);
  }
  context_.library().mem_unmap(context_.get(), piece.handle);
}

ucp_mem_h Registrations::Find(const void* data, std::size_t bytes) const {
  if (!any_.load(std::memory_order_acquire)) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::lock_guard lock(mutex_);
  const auto after = pieces_.upper_bound(begin);
  if (after == pieces_.begin()) return nullptr;
  const Piece& piece = std::prev(after)->second;
  return bytes <= piece.end - begin && begin < piece.end ? piece.handle : nullptr;
}

}  // namespace dtrun::ucx_plugin
