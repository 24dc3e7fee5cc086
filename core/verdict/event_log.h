// events.log: the facts of a job (records.h) as lines of JSON, from which the verdict is made again.
//
// {"at": nanoseconds since the job's start, "from": "root", "kind": "ended", "rank": 3, ...}
// EventLog is owned by the root; its loop thread. Replay is pure.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/verdict/story.h"

namespace dtrun::verdict {

inline constexpr char kEventsFile[] = "events.log";
// Where the lines before go when a generation begins in a file of more than kMostOfAFile.
inline constexpr char kEventsBefore[] = "events.1.log";

class EventLog {
 public:
  using Clock = std::chrono::steady_clock;
  // The file may reach this size before looks, reports and other records that repeat are no longer written,
  // and before the next generation begins a new file; a record tells that some are missing. So a job of any
  // length fills at most two files of this size, and what its ranks' ends need.
  static constexpr std::size_t kMostOfAFile = std::size_t{64} << 20;

  // Appends a line; with `anew`, to a new file, after the old one was kept as kEventsBefore. False: it
  // failed, and may have written a part of the line.
  using Write = std::function<bool(std::string_view line, bool anew)>;

  // Without `write`: in memory only. `begun`: the job's start.
  explicit EventLog(Write write = {}, Clock::time_point begun = Clock::now(), std::size_t most = kMostOfAFile)
      : write_(std::move(write)), begun_(begun), most_(most) {}

  // `from`: who observed it: "root", "rank 3", "host node1".
  void Add(fact::Any fact, std::string from = "root");

  const Story& story() const { return story_; }
  const Facts& facts() const { return story_.facts(); }

 private:
  void Put(const Entry& entry, bool anew = false);

  const Write write_;
  const Clock::time_point begun_;
  const std::size_t most_;
  std::optional<fact::Opened> opened_;
  std::size_t size_ = 0;
  bool gap_ = false;     // the file tells that records are missing
  bool broken_ = false;  // the last write failed
  Story story_;
};

// One line without its newline.
std::string ToLine(const Entry& entry);
// An error: it is no record, or not one that this dtrun knows, or a value is out of bounds.
Result<Entry> FromLine(std::string_view line);

// The story in the text of events.log, or of the file before and this one. Lines that are no records, such as
// the last one after a crash, are skipped, as are kinds that only a newer dtrun knows; the story then has a
// gap. An error: not such a file, or one of another version.
Result<Story> Replay(std::string_view text);

}  // namespace dtrun::verdict
