#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/read_file.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/control/client.h"
#include "core/job/run_registry.h"
#include "core/options/text.h"
#include "core/output/display.h"
#include "core/verdict/event_log.h"
#include "core/verdict/suspect.h"
#include "core/verdict/verdict.h"
#include "tools/dtrun/find_run.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;
using WallClock = std::chrono::system_clock;

constexpr std::size_t kMostPast = 10;
constexpr std::size_t kMostOfAVerdict = std::size_t{64} << 20;
constexpr std::size_t kMostOfEvents = std::size_t{4} << 20;

struct PsArguments {
  bool all = false;
  bool json = false;
};

struct JobRow {
  std::string job, state;
  bool live = false;
  int ranks = 0, hosts = 0;  // 0: not known
  std::uint64_t restarts = 0;
  std::chrono::nanoseconds age{};
  std::optional<double> seconds;  // of a past run
  WallClock::time_point began;
  std::string folder;
  std::string places;   // where the ranks of a live job are; empty: not known in time
  std::string joining;  // while the hosts of a live job join: which are missing and why
};

// The last generation that began, if the first part of events.log tells of one.
void ReadBegin(const fs::path& folder, JobRow* row) {
  const std::string events = ReadForeignFile(folder / verdict::kEventsFile, kMostOfEvents);
  const auto at = events.rfind("\"kind\":\"began\"");
  if (at == events.npos) return;
  const auto begin = events.rfind('\n', at) + 1;  // 0 if there is none
  const auto entry = verdict::FromLine(std::string_view(events).substr(begin, events.find('\n', at) - begin));
  if (!entry) return;
  const auto* const began = std::get_if<verdict::fact::Began>(&entry->fact);
  if (began == nullptr) return;
  std::set<std::string> hosts;
  for (const auto& process : began->processes) {
    row->ranks += process.count;
    hosts.insert(process.host);
  }
  row->hosts = static_cast<int>(hosts.size());
  row->restarts = began->generation;
  if (row->live) row->state = events.find("\"kind\":\"started\"", at) == events.npos ? "starting" : "running";
}

std::string TextOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? Printable(found->get<std::string>()) : "";
}

void ReadEnd(const fs::path& folder, JobRow* row) {
  const Json verdict = ParseJson(ReadForeignFile(folder / "verdict.json", kMostOfAVerdict));
  if (!verdict.is_object()) {
    row->state = "no verdict";
    return;
  }
  const std::string result = TextOf(verdict, "result"), why = TextOf(verdict, "exit_class");
  if (result == "succeeded")
    row->state = "ok";
  else if (const std::string signal = TextOf(verdict, "interrupt");
           result == "interrupted" && !signal.empty())
    row->state = result + ": " + signal;
  else if (result == "agent killed" || result == "guard killed")
    row->state = "dtrun killed";
  else
    row->state = why.empty() ? result : result + ": " + why;
  for (const char* const key : {"job_seconds", "duration_seconds"}) {  // the latter is of the last generation
    const auto took = verdict.find(key);
    if (!row->seconds && took != verdict.end() && took->is_number()) row->seconds = took->get<double>();
  }
}

// Asks the job, which knows its state better than its records, and then, which takes longer, where its ranks
// are.
void AskJob(const fs::path& folder, int pid, WallClock::time_point deadline, JobRow* row) {
  for (const auto what : {control::What::kState, control::What::kPlaces}) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - WallClock::now());
    if (left.count() <= 0) return;
    const auto answer = control::AskJob(folder, control::Question{.what = what}, left);
    if (!answer) {
      std::error_code none;
      if (row->state != "starting" && !fs::exists(folder / control::kSocket, none) && !none)
        row->places = fmt::format("its socket was removed, so nothing can ask it; to end it: kill {}", pid);
      return;
    }
    row->state = Printable(answer->state);
    row->restarts = answer->generation;
    row->places = verdict::PlacesText(answer->places);
    row->joining = Printable(answer->joining);
  }
}

JobRow RowOf(const job::RegisteredRun& run, bool live, WallClock::time_point now,
             WallClock::time_point deadline) {
  JobRow row;
  row.job = Printable(run.job);
  row.live = live;
  row.began = run.began;
  row.age = std::max(now - run.began, WallClock::duration::zero());
  row.folder = run.folder.string();
  if (live) row.state = "starting";
  std::error_code none;
  if (live && !fs::exists(run.folder, none) && !none) {
    row.state = "folder removed";
    row.places = fmt::format("nothing can ask it; to end it: kill {}", run.pid);
    return row;
  }
  ReadBegin(run.folder, &row);
  if (live) AskJob(run.folder, run.pid, deadline, &row);
  if (!live) ReadEnd(run.folder, &row);
  return row;
}

std::string CountText(int count) { return count == 0 ? "-" : std::to_string(count); }

std::string TimeText(std::chrono::nanoseconds time) {
  const auto whole = std::chrono::duration_cast<std::chrono::hours>(time).count();
  constexpr int kHoursOfADay = 24, kMostHours = 100;
  return whole < kMostHours ? verdict::FormatElapsed(time) : fmt::format("{} days", whole / kHoursOfADay);
}

Json RowJson(const JobRow& row) {
  return {{"job", row.job},
          {"state", row.state},
          {"live", row.live},
          {"ranks", row.ranks == 0 ? Json(nullptr) : Json(row.ranks)},
          {"hosts", row.hosts == 0 ? Json(nullptr) : Json(row.hosts)},
          {"began", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(WallClock::to_time_t(row.began)))},
          {"age_seconds", std::chrono::duration<double>(row.age).count()},
          {"duration_seconds", row.seconds ? Json(*row.seconds) : Json(nullptr)},
          {"restarts", row.restarts},
          {"folder", row.folder},
          {"joining", row.joining.empty() ? Json(nullptr) : Json(row.joining)},
          {"places", row.places.empty() ? Json(nullptr) : Json(row.places)}};
}

std::string TableText(const std::vector<JobRow>& rows) {
  std::vector<std::vector<std::string>> cells = {
      {"JOB", "STATE", "RANKS", "HOSTS", "AGE", "TOOK", "RESTARTS"}};
  for (const JobRow& row : rows) {
    const std::chrono::duration<double> took(row.seconds.value_or(0));
    cells.push_back({row.job, row.state, CountText(row.ranks), CountText(row.hosts), TimeText(row.age),
                     row.seconds ? TimeText(std::chrono::duration_cast<std::chrono::nanoseconds>(took)) : "-",
                     std::to_string(row.restarts)});
  }
  std::vector<std::size_t> widths(cells[0].size());
  for (const auto& line : cells)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  const auto append = std::back_inserter(text);
  for (std::size_t at = 0; at < cells.size(); ++at) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      constexpr std::size_t kTexts = 2;  // aligned to the left, and the numbers to the right
      if (i < kTexts) fmt::format_to(append, "{:<{}}  ", cells[at][i], widths[i]);
      if (i >= kTexts)
        fmt::format_to(append, "{:>{}}{}", cells[at][i], widths[i], i + 1 < widths.size() ? "  " : "\n");
    }
    // On a line of its own: a path is not cut and may be longer than the table.
    if (at == 0) continue;
    fmt::format_to(append, "  {}\n", options::ShownPath(rows[at - 1].folder));
    if (!rows[at - 1].places.empty()) fmt::format_to(append, "  {}\n", rows[at - 1].places);
    if (!rows[at - 1].joining.empty()) fmt::format_to(append, "  {}\n", rows[at - 1].joining);
  }
  return text;
}

int Ps(const PsArguments& arguments) {
  const WallClock::time_point now = WallClock::now();
  const WallClock::time_point deadline = now + std::chrono::milliseconds(300);  // for all answers together
  std::vector<JobRow> rows, past;
  std::size_t omitted = 0;
  for (const job::RegisteredRun& run : job::RegisteredRuns()) {
    const bool live = IsLiveRun(run);
    if (!live && !arguments.all && past.size() >= kMostPast) {
      ++omitted;
      continue;
    }
    (live ? rows : past).push_back(RowOf(run, live, now, deadline));
  }
  std::ranges::move(past, std::back_inserter(rows));
  if (arguments.json) {
    Json jobs = Json::array();
    for (const JobRow& row : rows) jobs.push_back(RowJson(row));
    WriteOutput(JsonDocument(1, {{"jobs", jobs}, {"omitted", omitted}}));
    return 0;
  }
  if (rows.empty()) {
    WriteForReading("no job of this user is known on this host\n");
    return 0;
  }
  std::string text = TableText(rows);
  if (omitted > 0) text += fmt::format("{} older runs: dtrun ps --all\n", omitted);
  WriteTable(output::TamedMessage(text));
  return 0;
}

}  // namespace

void AddPs(CLI::App& app, ConfigArguments*, Verbs* to) {
  const auto own = std::make_shared<PsArguments>();
  CLI::App* ps = app.add_subcommand("ps", "List your jobs on this host, live and past");
  ps->add_flag("-a,--all", own->all, "All past runs that are known, not the newest 10");
  ps->add_flag("--json", own->json, "Machine-readable");
  ps->footer(
      "Live jobs come first, then past runs, newest first. dtrun knows the last 1,000 runs that you started "
      "on this "
      "host, wherever their folders are.");
  to->push_back({ps, [own] { return Ps(*own); }});
}

}  // namespace dtrun::cli
