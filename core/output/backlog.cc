#include "core/output/backlog.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/error.h"
#include "core/output/file_write.h"

namespace dtrun::output {
namespace {

constexpr std::size_t kChunk = 64 << 10;
constexpr off_t kRelease = 16 << 20;

// Precedes each chunk in the file.
struct Header {
  std::uint32_t stream;
  std::uint32_t size;
  std::uint64_t lines;
};

std::uint64_t LinesIn(std::string_view bytes) {
  return static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
}

void Add(std::deque<Chunk>* chunks, Stream stream, std::string_view lines) {
  const bool joins = !chunks->empty() && chunks->back().stream == stream &&
                     chunks->back().bytes.size() + lines.size() < kChunk;
  if (!joins) chunks->push_back({stream, {}});
  std::string& bytes = chunks->back().bytes;
  bytes.append(lines);
  bytes += '\n';
}

// 0 or an errno value.
int ReadAllAt(int fd, char* to, std::size_t size, off_t offset) {
  while (size > 0) {
    const ssize_t got = pread(fd, to, size, offset);
    if (got == 0) return EIO;
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    to += got;
    offset += got;
    size -= static_cast<std::size_t>(got);
  }
  return 0;
}

}  // namespace

std::string MissingLines(std::uint64_t count) {
  return "dtrun: " + std::to_string(count) + (count == 1 ? " line" : " lines") +
         " not shown here; they are in the log files";
}

void Backlog::Push(Stream stream, std::string_view lines) {
  if (LeavesOut(stream)) {
    lines_left_out_ += 1 + LinesIn(lines);
    return;
  }
  const bool spilling = spill_read_ != spill_end_ || !back_.empty();
  if (omitted_ > 0) {
    // Drop lines until half of the memory is free again, to get one notice instead of hundreds.
    if (spilling || front_bytes_ > memory_ / 2) {
      LeaveOut(lines);
      return;
    }
    const std::string notice = TakeNotice();
    front_bytes_ += notice.size() + 1;
    Add(&front_, Stream::kErr, notice);
  }
  if (!spilling && front_bytes_ + lines.size() < memory_) {
    front_bytes_ += lines.size() + 1;
    Add(&front_, stream, lines);
    return;
  }
  back_bytes_ += lines.size() + 1;
  Add(&back_, stream, lines);
  if (back_bytes_ >= kChunk) Spill();
}

bool Backlog::Pop(Chunk* chunk) {
  while (PopAny(chunk)) {
    if (!LeavesOut(chunk->stream)) return true;
    lines_left_out_ += LinesIn(chunk->bytes);
  }
  return false;
}

bool Backlog::PopAny(Chunk* chunk) {
  if (!front_.empty()) {
    *chunk = std::move(front_.front());
    front_.pop_front();
    front_bytes_ -= chunk->bytes.size();
    return true;
  }
  if (spill_read_ != spill_end_) return Unspill(chunk);
  if (!back_.empty()) {
    *chunk = std::move(back_.front());
    back_.pop_front();
    back_bytes_ -= chunk->bytes.size();
    return true;
  }
  if (omitted_ == 0) return false;
  if (LeavesOut(Stream::kErr)) {
    lines_left_out_ += std::exchange(omitted_, 0);
    omitted_bytes_ = 0;
    return false;
  }
  *chunk = {Stream::kErr, TakeNotice() + '\n'};
  return true;
}

bool Backlog::OpenSpill() {
  if (spill_) return true;
  spill_error_ = folder_.empty() ? ENOENT : 0;
  if (folder_.empty()) return false;
  spill_ = UniqueFd(open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (spill_) return true;
  // Some network file systems do not support unnamed files.
  std::string name = (folder_ / "overflow-XXXXXX").string();
  spill_ = UniqueFd(mkostemp(name.data(), O_CLOEXEC));
  if (spill_ && unlink(name.c_str()) == 0) return true;
  spill_error_ = errno;
  return false;
}

void Backlog::Spill() {
  off_t end = spill_end_;
  bool written = OpenSpill();
  for (const Chunk& chunk : back_) {
    if (!written) break;
    const Header header{static_cast<std::uint32_t>(chunk.stream),
                        static_cast<std::uint32_t>(chunk.bytes.size()), LinesIn(chunk.bytes)};
    const std::string_view head(reinterpret_cast<const char*>(&header), sizeof header);
    spill_error_ = WriteAllAt(spill_.get(), head, end);
    if (spill_error_ == 0)
      spill_error_ = WriteAllAt(spill_.get(), chunk.bytes, end + static_cast<off_t>(sizeof header));
    written = spill_error_ == 0;
    end += static_cast<off_t>(sizeof header + chunk.bytes.size());
  }
  if (written) {
    spill_end_ = end;
  } else {
    for (const Chunk& chunk : back_)
      LeaveOut(std::string_view(chunk.bytes).substr(0, chunk.bytes.size() - 1));
  }
  back_.clear();
  back_bytes_ = 0;
}

bool Backlog::Unspill(Chunk* chunk) {
  Header header{};
  int number = ReadAllAt(spill_.get(), reinterpret_cast<char*>(&header), sizeof header, spill_read_);
  if (number == 0) chunk->stream = static_cast<Stream>(header.stream);
  if (number == 0 && LeavesOut(chunk->stream)) {  // skip it without reading
    lines_left_out_ += header.lines;
    chunk->bytes.clear();
  } else if (number == 0) {
    chunk->bytes.resize(header.size);
    number = ReadAllAt(spill_.get(), chunk->bytes.data(), header.size,
                       spill_read_ + static_cast<off_t>(sizeof header));
  }
  spill_read_ += static_cast<off_t>(sizeof header + header.size);
  if (number != 0) {
    *chunk = {Stream::kErr, Error::System("dtrun: cannot read back waiting output", number).text +
                                "; what is missing here is in the log files\n"};
    spill_read_ = spill_end_;
  }
  // Frees disk space. Without hole punching the file keeps its size a little longer. A failed truncation only
  // wastes space, which later writes reuse.
  if (spill_read_ == spill_end_) {
    spill_read_ = spill_end_ = spill_released_ = 0;
    if (ftruncate(spill_.get(), 0) != 0) spill_.Reset();
  } else if (spill_read_ - spill_released_ >= kRelease) {
    fallocate(spill_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, spill_released_,
              spill_read_ - spill_released_);
    spill_released_ = spill_read_;
  }
  return true;
}

void Backlog::LeaveOut(std::string_view lines) {
  omitted_ += 1 + LinesIn(lines);
  omitted_bytes_ += lines.size() + 1;
}

std::string Backlog::TakeNotice() {
  const std::uint64_t count = std::exchange(omitted_, 0), bytes = std::exchange(omitted_bytes_, 0);
  return Error::System("dtrun: " + std::to_string(count) + (count == 1 ? " line of " : " lines of ") +
                           std::to_string(bytes) +
                           " bytes not shown here, as they cannot wait in a file in '" + folder_.string() +
                           "'",
                       spill_error_)
             .text +
         "; see the log files there";
}

}  // namespace dtrun::output
