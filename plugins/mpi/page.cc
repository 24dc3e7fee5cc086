#include "page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "dtrun/plugin.hpp"

namespace dtrun::mpi_plugin {
namespace {

using sdk::Failure;

std::size_t Bytes(int size) { return sizeof(PageHeader) + static_cast<std::size_t>(size) * sizeof(PageSlot); }

[[noreturn]] void ThrowErrno(const std::string& what) {
  const int code = errno;
  std::string text = what + ": " + std::strerror(code);
  rlimit files{};
  if (code == EMFILE && getrlimit(RLIMIT_NOFILE, &files) == 0)
    text += "; raise `ulimit -n`, which is " + std::to_string(files.rlim_cur);
  throw Failure(DTRUN_SYSTEM, text).Vendor("errno", code);
}

}  // namespace

void Page::Map() {
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) ThrowErrno("map the page that ranks meet in");
  memory_ = memory;
}

Page Page::Make(int size) {
  Page page(memfd_create("dtrun-mpi", MFD_CLOEXEC), Bytes(size));
  if (page.file_ < 0) ThrowErrno("make the page that ranks meet in");
  rlimit limit{};
  const bool fits = getrlimit(RLIMIT_FSIZE, &limit) != 0 || page.bytes_ <= limit.rlim_cur;  // else SIGXFSZ
  if (!fits) errno = EFBIG;
  if (!fits || ftruncate(page.file_, static_cast<off_t>(page.bytes_)) != 0)
    ThrowErrno("size the page that ranks meet in");
  page.Map();
  auto* const header = new (page.memory_) PageHeader;
  for (int rank = 0; rank < size; ++rank) new (&page.slot(rank)) PageSlot;
  if (getrandom(&header->nonce, sizeof header->nonce, 0) != sizeof header->nonce) ThrowErrno("draw a number");
  return page;
}

Page Page::Open(const std::string& address, int size) {
  const std::size_t space = address.find(' ');
  if (space == std::string::npos)
    throw Failure(DTRUN_INTERNAL, "'" + address + "' is not an address of a page");
  const std::string path = address.substr(0, space);
  Page page(open(path.c_str(), O_RDWR | O_CLOEXEC), Bytes(size));
  if (page.file_ < 0) ThrowErrno("open '" + path + "'");
  // A process number means another process in another container.
  if (lseek(page.file_, 0, SEEK_END) != static_cast<off_t>(page.bytes_))
    throw Failure(DTRUN_FAILED_PRECONDITION, "'" + path + "' is something else here");
  page.Map();
  close(std::exchange(page.file_, -1));
  if (std::to_string(page.header().nonce) != address.substr(space + 1))
    throw Failure(DTRUN_FAILED_PRECONDITION, "'" + path + "' is another page here");
  return page;
}

Page::Page(Page&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_) {}

Page& Page::operator=(Page&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Page::~Page() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
  if (file_ >= 0) close(file_);
}

std::string Page::Address() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_) + " " +
         std::to_string(header().nonce);
}

PageSlot& Page::slot(int rank) const {
  auto* const first = reinterpret_cast<PageSlot*>(static_cast<char*>(memory_) + sizeof(PageHeader));
  return first[rank];
}

}  // namespace dtrun::mpi_plugin
