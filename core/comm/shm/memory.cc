#include "core/comm/shm/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <string>

#include "core/base/result.h"
#include "dtrun/plugin.hpp"

namespace dtrun::shm {
namespace {

[[noreturn]] void Fail(const std::string& action, const char* next) {
  const int number = errno;
  if (number == EMFILE)  // has a next step of its own
    throw sdk::Failure(DTRUN_SYSTEM, Error::System(action, number).text).Vendor("errno", number);
  throw sdk::Failure(number == ENOMEM ? DTRUN_OUT_OF_MEMORY : DTRUN_SYSTEM,
                     action + ": " + std::strerror(number) + "; " + next)
      .Vendor("errno", number);
}

std::byte* Map(int fd, std::size_t bytes, const std::string& what) {
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    Fail("map " + std::to_string(bytes) + " bytes of " + what,
         "raise the memory limit, or set comm.local = \"none\"");
  }
  return static_cast<std::byte*>(base);
}

// Beyond this limit the kernel ends the process by SIGXFSZ, a signal that a library may not change in a
// program.
void CheckLimit(std::size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur) return;
  errno = EFBIG;
  Fail("size shared memory to " + std::to_string(bytes) + " bytes",
       "raise `ulimit -f`, or set comm.local = \"none\"");
}

// "user:[4026531837]"; "-" if /proc does not show it.
std::string NamespaceOf(const char* kind) {
  std::array<char, 64> text;
  const ssize_t size = ::readlink(fmt::format("/proc/self/ns/{}", kind).c_str(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "-";
}

struct Place {
  int rank = -1;
  std::string users, processes;
  pid_t pid = -1;
  int fd = -1;
  std::uint64_t nonce = 0;

  std::string Text() const {
    return fmt::format("{} {} {} {} {} {}", rank, users, processes, pid, fd, nonce);
  }
  static Place Of(const std::string& text) {
    Place place;
    std::istringstream(text) >> place.rank >> place.users >> place.processes >> place.pid >> place.fd >>
        place.nonce;
    return place;
  }
};

std::string WhyApart(const Place& mine, const Place& first) {
  const auto other = [&](const char* what) {
    return fmt::format("rank {} is in another {} than rank {}", mine.rank, what, first.rank);
  };
  if (mine.users != first.users) return other("user namespace");
  if (mine.processes != first.processes) return other("PID namespace");
  try {
    const Memory memory = Memory::Open(first.pid, first.fd);
    std::uint64_t nonce = 0;
    if (memory.bytes() == sizeof nonce) std::memcpy(&nonce, memory.data(), sizeof nonce);
    return nonce == first.nonce ? "" : other("/proc");
  } catch (const sdk::Failure& failure) {
    return fmt::format("rank {} cannot {}", mine.rank, failure.what());
  }
}

}  // namespace

Memory Memory::Create(const char* name, std::size_t bytes) {
  Memory memory;
  memory.fd_ = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory.fd_ < 0) Fail("make shared memory", "set comm.local = \"none\" to do without");
  CheckLimit(bytes);
  if (ftruncate(memory.fd_, static_cast<off_t>(bytes)) != 0) {
    Fail("size shared memory to " + std::to_string(bytes) + " bytes", "free some memory");
  }
  // Sealed, so that no process can truncate it under its readers, which would end them by SIGBUS.
  if (fcntl(memory.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    Fail("fix the size of shared memory", "set comm.local = \"none\" to do without");
  }
  memory.base_ = Map(memory.fd_, bytes, "shared memory");
  memory.bytes_ = bytes;
  return memory;
}

Memory Memory::Open(pid_t pid, int fd) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  Memory memory;
  memory.fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (memory.fd_ < 0) {
    Fail("open '" + path + "', the shared memory of another rank",
         "ranks of one host need the same user and process namespace; or set comm.local = \"none\"");
  }
  struct stat status {};
  if (fstat(memory.fd_, &status) != 0) Fail("look at '" + path + "'", "set comm.local = \"none\"");
  memory.bytes_ = static_cast<std::size_t>(status.st_size);
  memory.base_ = Map(memory.fd_, memory.bytes_, "'" + path + "'");
  return memory;
}

Memory::~Memory() {
  if (base_ != nullptr) munmap(base_, bytes_);
  CloseFd();
}

void Memory::CloseFd() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void Memory::Drop() const {
  // On failure the pages stay until the last mapping is gone, which does no harm.
  (void)fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes_));
}

Result<std::string> Reach::WhyNot(dtrun_kv& kv, int rank, int host) {
  Place mine{rank, NamespaceOf("user"), NamespaceOf("pid"), ::getpid(), -1, 0};
  try {
    sample_ = Memory::Create("dtrun-reach", sizeof mine.nonce);
  } catch (const sdk::Failure& failure) {
    return fmt::format("rank {} cannot {}", rank, failure.what());
  }
  if (::getrandom(&mine.nonce, sizeof mine.nonce, 0) != sizeof mine.nonce)
    return Error::System("draw a number", errno);
  std::memcpy(sample_.data(), &mine.nonce, sizeof mine.nonce);
  mine.fd = sample_.fd();
  const std::string key = fmt::format("first/{}", host);
  const Result<bool> is_first = kv.CompareSet(key, false, {}, mine.Text());
  if (!is_first) return is_first.error();
  if (*is_first) return std::string();
  const Result<std::string> first = kv.TryGet(key);
  if (!first) return first.error();
  return WhyApart(mine, Place::Of(*first));
}

}  // namespace dtrun::shm
