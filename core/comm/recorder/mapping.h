// The memory of a Book: made by the agent, mapped by its ranks. Move-only; one owner.
#pragma once

#include <string>
#include <utility>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/comm/recorder/book.h"

namespace dtrun::comm {

class BookMapping {
 public:
  // An empty book for `ranks` ranks.
  static Result<BookMapping> Create(int ranks);
  // The book at `path`, as PathFor gives it.
  static Result<BookMapping> Open(const std::string& path);

  BookMapping(BookMapping&& other) noexcept
      : fd_(std::move(other.fd_)), bytes_(other.bytes_), book_(std::exchange(other.book_, nullptr)) {}
  BookMapping& operator=(BookMapping&&) = delete;
  ~BookMapping();

  BookHead* book() const { return book_; }
  // Where other processes find it while this one lives.
  std::string Path() const;

 private:
  BookMapping(UniqueFd fd, std::size_t bytes, BookHead* book)
      : fd_(std::move(fd)), bytes_(bytes), book_(book) {}
  UniqueFd fd_;
  std::size_t bytes_;
  BookHead* book_;
};

}  // namespace dtrun::comm
