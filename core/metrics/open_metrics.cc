#include "core/metrics/open_metrics.h"

#include <fmt/format.h>

#include <cmath>

namespace dtrun::metrics {
namespace {

struct Family {
  const char* name;  // in the journal: of the sample
  const char* type;
  const char* unit;
  const char* help;
};
constexpr Family kFamilies[] = {
    {kRanks, "gauge", "", "Ranks of the job."},
    {kRanksAlive, "gauge", "", "Ranks that have started and not ended."},
    {kRestarts, "counter", "", "How often all ranks were started again."},
    {kQuiet, "gauge", "seconds", "Time since the last output of a rank."},
    {kProcessor, "counter", "seconds", "Processor time of a rank, with its child processes."},
    {kMemory, "gauge", "bytes", "Resident memory of a rank, with its child processes."},
};
constexpr const char* kStates[] = {"starting", "running", "ending", "restarting"};

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

void Describe(std::string& page, std::string_view name, const char* type, std::string_view unit,
              const char* help) {
  if (std::string_view(type) == "counter") name.remove_suffix(std::string_view("_total").size());
  page += fmt::format("# TYPE {} {}\n", name, type);
  if (!unit.empty()) page += fmt::format("# UNIT {} {}\n", name, unit);
  page += fmt::format("# HELP {} {}\n", name, help);
}

// The labels of ranks, made once for each.
class RankLabels {
 public:
  explicit RankLabels(const std::function<std::string(int)>& host_of) : host_of_(host_of) {}
  const std::string& Of(int rank) {
    std::string& labels = labels_[rank];
    if (labels.empty()) labels = fmt::format("rank=\"{}\",host=\"{}\"", rank, LabelValue(host_of_(rank)));
    return labels;
  }

 private:
  const std::function<std::string(int)>& host_of_;
  std::map<int, std::string> labels_;
};

void AddJob(std::string& page, const control::Answer& now) {
  Describe(page, "dtrun_job", "info", "", "The job.");
  page += fmt::format("dtrun_job_info{{name=\"{}\",dtrun=\"{}\"}} 1\n", LabelValue(now.job), DTRUN_VERSION);
  Describe(page, "dtrun_job_state", "stateset", "", "What the job does.");
  for (const char* state : kStates)
    page += fmt::format("dtrun_job_state{{dtrun_job_state=\"{}\"}} {}\n", state, now.state == state ? 1 : 0);
  Describe(page, "dtrun_job_age_seconds", "gauge", "seconds", "Time since the job began.");
  page += fmt::format("dtrun_job_age_seconds {}\n", std::chrono::duration<double>(now.age).count());
}

}  // namespace

std::string LabelValue(std::string_view text) {
  std::string value;
  for (const char c : text) {
    if (c == '\\' || c == '"') value += '\\';
    c == '\n' ? value += "\\n" : value += c;
  }
  return value;
}

std::string OpenMetrics(const Journal& journal, const control::Answer& now,
                        const std::function<std::string(int rank)>& host_of) {
  std::string page;
  RankLabels labels(host_of);
  AddJob(page, now);
  const Journal::Newest& newest = journal.newest();
  for (const Family& family : kFamilies) {
    Describe(page, family.name, family.type, family.unit, family.help);
    for (auto it = newest.lower_bound({family.name, kOfTheJob});
         it != newest.end() && it->first.first == family.name; ++it) {
      const int rank = it->first.second;
      const std::string of = rank == kOfTheJob ? "" : "{" + labels.Of(rank) + "}";
      page += fmt::format("{}{} {}\n", family.name, of, Number(it->second.value));
    }
  }
  std::string steps;
  Describe(page, "dtrun_metric", "gauge", "", "What the program has reported with dtrun_metric.");
  Describe(steps, "dtrun_metric_step", "gauge", "", "The step of dtrun_metric.");
  for (const auto& [key, point] : newest) {
    const auto& [name, rank] = key;
    if (name.starts_with("dtrun_")) continue;
    const std::string of = fmt::format("{{name=\"{}\",{}}}", name, labels.Of(rank));
    page += fmt::format("dtrun_metric{} {}\n", of, Number(point.value));
    if (point.step) steps += fmt::format("dtrun_metric_step{} {}\n", of, *point.step);
  }
  page += steps;
  Describe(page, "dtrun_metrics_dropped_total", "counter", "",
           "Values beyond the number of series that dtrun keeps.");
  page += fmt::format("dtrun_metrics_dropped_total {}\n# EOF\n", journal.dropped());
  return page;
}

}  // namespace dtrun::metrics
