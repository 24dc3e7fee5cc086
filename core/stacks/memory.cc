#include "core/stacks/memory.h"

#include <sys/uio.h>

namespace dtrun::stacks {

bool Memory::Copy(std::uint64_t address, void* to, std::size_t size) const {
  if (address < 4096) return false;
  const iovec here{to, size};
  const iovec there{reinterpret_cast<void*>(address), size};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(pid_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

std::string Memory::Bytes(std::uint64_t address, std::size_t size) const {
  std::string bytes(size, '\0');
  if (!Copy(address, bytes.data(), size)) bytes.clear();
  return bytes;
}

}  // namespace dtrun::stacks
