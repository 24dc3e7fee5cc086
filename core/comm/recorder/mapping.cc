#include "core/comm/recorder/mapping.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace dtrun::comm {

Result<BookMapping> BookMapping::Create(int ranks) {
  UniqueFd fd(memfd_create("dtrun-recorder", MFD_CLOEXEC));
  if (!fd) return Error::System("make the flight recorder", errno);
  const std::size_t bytes = BookBytes(ranks);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    const int number = errno;
    Error error = Error::System(fmt::format("size the flight recorder to {} bytes", bytes), number);
    if (number == EFBIG) error.text += "; raise `ulimit -f`";
    return error;
  }
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return Error::System("map the flight recorder", errno);
  // Its pages are zero already, which is the empty state of the journals.
  auto* const book = new (base) BookHead;
  book->ranks = ranks;
  return BookMapping(std::move(fd), bytes, book);
}

Result<BookMapping> BookMapping::Open(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return Error::System(fmt::format("open the flight recorder '{}'", path), errno);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return Error::System(fmt::format("look at '{}'", path), errno);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < sizeof(BookHead))
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("'{}' is no flight recorder", path)};
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return Error::System(fmt::format("map '{}'", path), errno);
  BookMapping mapping(UniqueFd(), bytes, static_cast<BookHead*>(base));
  if (mapping.book_->version != kBookVersion || bytes < BookBytes(mapping.book_->ranks)) {
    return Error{
        DTRUN_FAILED_PRECONDITION,
        fmt::format("the flight recorder '{}' is of another dtrun than this program's libdtrun", path)};
  }
  return mapping;
}

BookMapping::~BookMapping() {
  if (book_ != nullptr) munmap(book_, bytes_);
}

std::string BookMapping::Path() const { return fmt::format("/proc/{}/fd/{}", getpid(), fd_.get()); }

}  // namespace dtrun::comm
