// The memory of a Book: made by the agent, mapped by its ranks. Move-only; one owner.
//
// Its size is sealed: nobody can cut it under those who read it.
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
  // The book at `path`, as Path gives it: the pages of `rank` for writing, the others for reading.
  static Result<BookMapping> Open(const std::string& path, int rank);

  BookMapping(BookMapping&& other) noexcept
      : fd_(std::move(other.fd_)), book_(std::exchange(other.book_, {})) {}
  BookMapping& operator=(BookMapping&&) = delete;
  ~BookMapping();

  const Book& book() const { return book_; }
  // Where other processes find it while this one lives.
  std::string Path() const;

 private:
  BookMapping(UniqueFd fd, const Book& book) : fd_(std::move(fd)), book_(book) {}
  UniqueFd fd_;
  Book book_;
};

}  // namespace dtrun::comm
