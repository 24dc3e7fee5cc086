#include "core/metrics/journal.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "core/base/own_file.h"
#include "core/base/text.h"
#include "core/output/file_write.h"

namespace dtrun::metrics {
namespace {

// The file as it is now; empty if it cannot be read.
std::string WholeFile(int folder) {
  const UniqueFd file(::openat(folder, kFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::string text;
  char chunk[65536];
  for (ssize_t size = 0; file && (size = ::read(file.get(), chunk, sizeof chunk)) > 0;)
    text.append(chunk, static_cast<std::size_t>(size));
  return text;
}

}  // namespace

std::string NumberJson(double value) {
  if (std::isfinite(value)) return fmt::format("{}", value);
  return std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"+Inf\"" : "\"-Inf\"";
}

// Lines are those of AddLine: what identifies a series stands between the time and the value.
std::string Thinned(std::string_view lines) {
  std::unordered_map<std::string_view, bool> keeps_next;
  std::string kept;
  for (const std::string_view line : LinesOf(lines)) {
    const std::size_t begin = line.find(','), end = line.find(",\"value\":");
    if (begin == line.npos || end == line.npos || end < begin) continue;
    const std::string_view series = line.substr(begin, end - begin);
    bool& keeps = keeps_next.try_emplace(series, true).first->second;
    if (keeps) kept += std::string(line) + '\n';
    keeps = !keeps;
  }
  return kept;
}

void Journal::Add(const std::string& name, int rank, const Point& point) {
  const std::pair key(name, rank);
  if (newest_.size() >= kMostSeries && !newest_.contains(key)) {
    ++dropped_;
    return;
  }
  newest_[key] = point;
  Series& series = series_[key];
  series.unwritten = series.written && point.time - *series.written < between_;
  if (series.unwritten) return;
  series.written = point.time;
  AddLine(name, rank, point);
}

void Journal::AddLine(const std::string& name, int rank, const Point& point) {
  if (failed_) return;
  const double seconds = std::chrono::duration<double>(point.time.time_since_epoch()).count();
  lines_ += fmt::format("{{\"time\":{:.3f}", seconds);
  if (rank != kOfTheJob) lines_ += fmt::format(",\"rank\":{}", rank);
  lines_ += fmt::format(",\"name\":\"{}\",\"value\":{}", name, NumberJson(point.value));
  if (point.step) lines_ += fmt::format(",\"step\":{}", *point.step);
  lines_ += "}\n";
}

Status Journal::Write() {
  if (failed_ || lines_.empty()) return {};
  const std::string lines = std::exchange(lines_, {});
  const auto fail = [&](Error error) {
    failed_ = true;
    return error;
  };
  if (!file_) {
    Result<UniqueFd> file = AppendToOwnFileAt(folder_, path_, mode_);
    if (!file) return fail(std::move(file).error());
    file_ = *std::move(file);
  }
  if (const int number = output::WriteAll(file_.get(), lines); number != 0) {
    Error error = Error::System(fmt::format("cannot write '{}'", path_.string()), number);
    error.text += "; the job continues without it; free space, or choose another folder with logs.dir";
    return fail(std::move(error));
  }
  size_ += lines.size();
  if (size_ <= most_bytes_) return {};
  Status thinned = Thin();
  return thinned ? thinned : fail(std::move(thinned).error());
}

Status Journal::Thin() {
  const std::string kept = Thinned(WholeFile(folder_));
  between_ *= 2;
  size_ = kept.size();
  file_.Reset();
  return ReplaceOwnFile(folder_, path_.parent_path(), kFile, kept, mode_);
}

Status Journal::Finish() {
  for (auto& [key, series] : series_) {
    if (std::exchange(series.unwritten, false)) AddLine(key.first, key.second, newest_.at(key));
  }
  return Write();
}

}  // namespace dtrun::metrics
