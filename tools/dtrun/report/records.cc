#include "tools/dtrun/report/records.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>

#include "core/base/read_file.h"
#include "core/base/text.h"
#include "core/job/run_dir.h"
#include "core/metrics/journal.h"
#include "core/verdict/event_log.h"

namespace dtrun::report {
namespace {

constexpr std::size_t kMostOfARecord = std::size_t{128} << 20;

Json ObjectIn(const std::filesystem::path& file) {
  Json json = ParseJson(ReadForeignFile(file, kMostOfARecord));
  return json.is_object() ? json : Json::object();
}

double NumberIn(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "+Inf") return std::numeric_limits<double>::infinity();
  if (json == "-Inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

// Seconds since 1970; 0: no such time.
double SecondsOf(const std::string& time) {
  std::tm parts{};
  const char* const end = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return end == nullptr || *end != '\0' ? 0 : static_cast<double>(::timegm(&parts));
}

std::vector<verdict::Entry> EntriesIn(const std::filesystem::path& folder) {
  std::vector<verdict::Entry> entries;
  for (const char* name : {verdict::kEventsBefore, verdict::kEventsFile}) {
    const std::string text = ReadForeignFile(folder / name, kMostOfARecord);
    for (const std::string_view line : LinesOf(text)) {
      if (auto entry = verdict::FromLine(line)) entries.push_back(*std::move(entry));
    }
  }
  return entries;
}

}  // namespace

Series ReadSeries(std::string_view lines, double began) {
  Series series;
  for (const std::string_view line : LinesOf(lines)) {
    const Json json = ParseJson(line);
    if (!json.is_object() || !json.contains("name") || !json["name"].is_string() || !json.contains("time") ||
        !json["time"].is_number() || !json.contains("value"))
      continue;
    const int rank = json.contains("rank") && json["rank"].is_number_integer() ? json["rank"].get<int>()
                                                                               : metrics::kOfTheJob;
    Sample sample{std::max(0.0, json["time"].get<double>() - began), NumberIn(json["value"]), {}};
    if (json.contains("step") && json["step"].is_number()) sample.step = json["step"].get<double>();
    series[json["name"].get<std::string>()][rank].push_back(sample);
  }
  for (auto& [name, ranks] : series) {
    for (auto& [rank, samples] : ranks) std::ranges::stable_sort(samples, {}, &Sample::time);
  }
  return series;
}

Result<RunRecords> ReadRecordsOf(const std::filesystem::path& folder) {
  auto story = cli::ReadRun(folder);
  if (!story) return story.error();
  RunRecords records;
  records.folder = folder;
  records.story = *std::move(story);
  records.plan = ObjectIn(folder / "plan.json");
  records.config = ObjectIn(folder / "config.json");
  records.verdict = ObjectIn(folder / "verdict.json");
  records.entries = EntriesIn(folder);
  for (const verdict::Entry& entry : records.entries) {
    if (const auto* opened = std::get_if<verdict::fact::Opened>(&entry.fact)) records.began = opened->began;
    records.seconds = std::max(records.seconds, std::chrono::duration<double>(entry.at).count());
  }
  const double began = SecondsOf(records.began);
  records.metrics = ReadSeries(ReadForeignFile(folder / metrics::kFile, kMostOfARecord), began);
  if (job::IsLive(folder) == std::optional(true) && began > 0)
    records.seconds = std::max(records.seconds, static_cast<double>(std::time(nullptr)) - began);
  return records;
}

}  // namespace dtrun::report
