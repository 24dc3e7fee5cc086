#include "core/contract/mapping.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace dtrun::contract {

Result<RecorderMapping> RecorderMapping::Create(int ranks) {
  UniqueFd fd(memfd_create("dtrun-recorder", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return Error::System("make the flight recorder", errno);
  const std::size_t bytes = RecorderBytes(ranks);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    const int number = errno;
    Error error = Error::System(fmt::format("size the flight recorder to {} bytes", bytes), number);
    if (number == EFBIG) error.text += "; raise `ulimit -f`";
    return error;
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Error::System("fix the size of the flight recorder", errno);
  }
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return Error::System("map the flight recorder", errno);
  // New pages are zero, which is the empty state of the rings.
  return RecorderMapping(std::move(fd), RecorderMemory{new (base) RecorderHead, ranks});
}

Result<RecorderMapping> RecorderMapping::Open(int fd, const std::string& name, int rank) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return Error::System(fmt::format("look at '{}'", name), errno);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < kRecorderHeadBytes)
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("'{}' is not a flight recorder", name)};
  const auto ranks = static_cast<int>((bytes - kRecorderHeadBytes) / kRankPagesBytes);
  void* const base = mmap(nullptr, RecorderBytes(ranks), PROT_READ, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return Error::System(fmt::format("map '{}'", name), errno);
  RecorderMapping mapping(UniqueFd(), RecorderMemory{static_cast<RecorderHead*>(base), ranks});
  if (mapping.recorder_memory_.head->version != kRecorderVersion || bytes != RecorderBytes(ranks)) {
    return Error{
        DTRUN_FAILED_PRECONDITION,
        fmt::format("the flight recorder '{}' is of another dtrun than this program's libdtrun", name)};
  }
  if (rank < 0 || rank >= ranks) {
    return Error{DTRUN_INTERNAL, fmt::format("the flight recorder has no pages for rank {}", rank)};
  }
  std::byte* const own = mapping.recorder_memory_.PagesOf(rank);
  if (mprotect(own, kRankPagesBytes, PROT_READ | PROT_WRITE) != 0) {
    return Error::System(fmt::format("map the pages of rank {} in '{}'", rank, name), errno);
  }
  return mapping;
}

RecorderMapping::~RecorderMapping() {
  if (recorder_memory_.head != nullptr) munmap(recorder_memory_.head, RecorderBytes(recorder_memory_.ranks));
}

std::string RecorderMapping::Path() const { return fmt::format("/proc/{}/fd/{}", getpid(), fd_.get()); }

}  // namespace dtrun::contract
