// A queue of output that the user's terminal has not accepted yet.
//
// Owned by a Console, which locks around every call. A few MiB wait in memory; what comes
// beyond goes to an unlinked file, made when it is first needed. When that file cannot
// grow, lines are left out and counted, and a notice stands in their place: how many, of how
// many bytes, and why.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/fd.h"
#include "core/output/output.h"

namespace dtrun::output {

struct Chunk {
  Stream stream = Stream::kOut;
  std::string bytes;  // whole lines, each with its newline
};

// The notice for dropped lines.
std::string MissingLines(std::uint64_t count);

class Backlog {
 public:
  static constexpr std::size_t kMemory = 8 << 20;

  explicit Backlog(std::filesystem::path spill_folder, std::size_t memory = kMemory)
      : folder_(std::move(spill_folder)), memory_(memory) {}

  // Where the file is made from now on, if it is not there yet.
  void SpillInto(std::filesystem::path folder) { folder_ = std::move(folder); }

  // `lines`: one or more, without the last newline.
  void Push(Stream stream, std::string_view lines);
  // The oldest chunk, never empty; false if there is none.
  bool Pop(Chunk* chunk);

  // Drops and counts all output of that stream, queued or still to come.
  void LeaveOut(Stream stream) { left_out_[stream == Stream::kErr] = true; }
  std::uint64_t lines_left_out() const { return lines_left_out_; }

  bool empty() const { return front_.empty() && spill_read_ == spill_end_ && back_.empty() && omitted_ == 0; }
  // Bytes waiting in memory.
  std::size_t bytes() const { return front_bytes_ + back_bytes_; }

 private:
  bool LeavesOut(Stream stream) const { return left_out_[stream == Stream::kErr]; }
  bool PopAny(Chunk* chunk);
  bool OpenSpill();
  // Moves back_ to the file, or drops it.
  void Spill();
  bool Unspill(Chunk* chunk);
  void LeaveOut(std::string_view lines);  // without the last newline
  std::string TakeNotice();

  std::filesystem::path folder_;
  std::size_t memory_;

  // Order: front_, the file's [spill_read_, spill_end_), back_, the notice about omitted_ lines.
  std::deque<Chunk> front_;
  std::size_t front_bytes_ = 0;
  UniqueFd spill_;
  off_t spill_read_ = 0;
  off_t spill_end_ = 0;
  off_t spill_released_ = 0;
  std::deque<Chunk> back_;
  std::size_t back_bytes_ = 0;
  std::uint64_t omitted_ = 0;
  std::uint64_t omitted_bytes_ = 0;
  int spill_error_ = 0;  // errno, why they are

  bool left_out_[2] = {false, false};
  std::uint64_t lines_left_out_ = 0;
};

}  // namespace dtrun::output
