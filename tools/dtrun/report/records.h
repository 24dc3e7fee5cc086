// What a report is made of, read from a run folder: of an ended job, a running one, or a copied folder.
//
// Files may be cut or damaged; what cannot be read is left out. Any thread.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/verdict/records.h"
#include "tools/dtrun/explain_run.h"

namespace dtrun::report {

struct Sample {
  double time = 0;  // seconds since the job began
  double value = 0;
  std::optional<double> step;
};
using SamplesOfRanks = std::map<int, std::vector<Sample>>;  // rank -1 is the job
using Series = std::map<std::string, SamplesOfRanks>;       // by name

struct RunRecords {
  std::filesystem::path folder;
  cli::RunStory story;
  Json plan, config, verdict;           // objects; empty: there is none
  std::vector<verdict::Entry> entries;  // of events.log, and of the file before
  std::string began;                    // "2026-11-29T03:46:09Z"; empty: not known
  Series metrics;
  double seconds = 0;  // since the job began, at its end or now
};

// An error: the folder tells nothing.
Result<RunRecords> ReadRecordsOf(const std::filesystem::path& folder);

// Lines of metrics.jsonl; others are skipped. `began`: seconds since 1970.
Series ReadSeries(std::string_view lines, double began);

}  // namespace dtrun::report
