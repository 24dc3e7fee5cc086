#include "core/stacks/memory.h"

#include <sys/uio.h>

namespace dtrun::stacks {
namespace {

constexpr std::uint64_t kFirstPage = 4096;  // never mapped by a program

}  // namespace

bool Memory::Copy(std::uint64_t address, void* to, std::size_t size) const {
  if (address < kFirstPage || copies_ == kMostCopies || size > kMostBytes - bytes_) return false;
  ++copies_;
  bytes_ += size;
  return CopyFrom(address, to, size);
}

std::string Memory::Bytes(std::uint64_t address, std::size_t size) const {
  std::string bytes(size, '\0');
  if (!Copy(address, bytes.data(), size)) bytes.clear();
  return bytes;
}

bool ProcessMemory::CopyFrom(std::uint64_t address, void* to, std::size_t size) const {
  const iovec here{to, size};
  const iovec there{reinterpret_cast<void*>(address), size};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(pid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

}  // namespace dtrun::stacks
