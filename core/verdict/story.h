// The records of a job (records.h) folded into generations: the last one in full, earlier ones as summaries.
//
// A value. The root folds as it records (event_log.h); `dtrun explain` folds what a file holds. Equal records
// give equal stories. Records may come from a damaged file: those about unknown ranks are ignored.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/verdict/records.h"

namespace dtrun::verdict {

// How the generations of a job ended. Keeps only the first and the latest summaries, so that memory,
// verdict.json and events.log stay bounded for jobs that restart for weeks.
class Story {
 public:
  void Apply(const Entry& entry);

  const std::string& job() const { return opened_.job; }
  // Of the generation in progress, or of the last one.
  const Facts& facts() const { return facts_; }
  bool begun() const { return begun_; }  // whether there is such a generation
  bool over() const { return over_; }    // whether it has ended
  // Of the generations before: the first ones, and after a gap of `omitted` the latest.
  const fact::Earlier& earlier() const { return earlier_; }
  bool gap() const { return gap_; }  // whether records of this file are missing
  std::uint64_t lines_not_shown() const { return lines_not_shown_; }
  const std::string& not_started() const { return not_started_; }  // why; empty: it was

  // No record follows: the run is judged by what is there, unless it is over. `at`: of the last record.
  void End(std::chrono::nanoseconds at);
  // The run's folder is now `folder`: names its files there.
  void MoveTo(const std::filesystem::path& folder);

 private:
  friend struct Fold;

  RankFacts* Find(int rank);
  // An mpirun without a known end ended as the rank that it started.
  void EndOuterProcesses();

  fact::Opened opened_;
  fact::Earlier earlier_;
  Facts facts_;
  std::optional<Facts> before_;       // of the generation before
  std::chrono::nanoseconds began_{};  // when that generation began
  bool begun_ = false, over_ = false, gap_ = false;
  std::uint64_t lines_not_shown_ = 0;
  std::string not_started_;
};

}  // namespace dtrun::verdict
