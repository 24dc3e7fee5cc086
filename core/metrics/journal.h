// The newest value of every metric of a job, and its history in metrics.jsonl of the run folder.
//
// One JSON object a line: time (seconds since 1970), rank (absent: of the job), name, value, step (absent:
// none). The file covers the whole run in at most 16 MiB: when it is full, every second line of each series
// leaves it, and from then on the time between two lines of a series is twice as long. Owned by the root;
// loop thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::metrics {

inline constexpr char kFile[] = "metrics.jsonl";
inline constexpr std::size_t kMostSeries = 1 << 16;

using Time = std::chrono::system_clock::time_point;
inline constexpr int kOfTheJob = -1;  // instead of a rank

struct Point {
  double value = 0;
  std::optional<std::int64_t> step = {};
  Time time = {};
};

class Journal {
 public:
  // By name, then rank.
  using Newest = std::map<std::pair<std::string, int>, Point, std::less<>>;

  // Appends to the file in the open folder `folder`, at `path`, which is created by the first value.
  Journal(int folder, std::filesystem::path path, mode_t mode, std::size_t most_bytes = std::size_t{16} << 20)
      : folder_(folder), path_(std::move(path)), mode_(mode), most_bytes_(most_bytes) {}

  // Values beyond kMostSeries are dropped.
  void Add(const std::string& name, int rank, const Point& point);
  // Writes what was added. After an error, which is reported once, nothing more is written.
  Status Write();
  // The same, with the newest value of each series even if its last line is not old enough.
  Status Finish();

  const Newest& newest() const { return newest_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Series {
    std::optional<Time> written = {};
    bool unwritten = false;  // the newest value
  };

  void AddLine(const std::string& name, int rank, const Point& point);
  Status Thin();

  const int folder_;
  const std::filesystem::path path_;
  const mode_t mode_;
  const std::size_t most_bytes_;
  Newest newest_;
  std::map<std::pair<std::string, int>, Series> series_;
  std::chrono::milliseconds between_{500};  // two lines of a series
  std::string lines_;
  std::size_t size_ = 0;  // of the file
  UniqueFd file_;
  bool failed_ = false;
  std::uint64_t dropped_ = 0;
};

// A number as JSON, where NaN and the infinities are texts: "NaN", "+Inf", "-Inf".
std::string NumberJson(double value);
// Every second line of each series of such a file.
std::string Thinned(std::string_view lines);

}  // namespace dtrun::metrics
