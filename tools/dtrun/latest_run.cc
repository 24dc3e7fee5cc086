#include "tools/dtrun/latest_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/foreign_file.h"
#include "core/base/json.h"
#include "core/job/run_dir.h"

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostEntries = 10000;  // entries examined per folder

struct FoundRun {
  fs::path folder;
  fs::file_time_type time;
};

bool IsOwnFolder(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

template <class Visit>
void ForEachIn(const fs::path& folder, Visit&& visit) {
  std::error_code failure;
  int count = 0;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    if (++count > kMostEntries) return;
    visit(entry->path());
  }
}

// Adds `folder` with its start time, if it is a run.
void AddRun(const fs::path& folder, std::vector<FoundRun>* runs) {
  std::error_code missing;
  const fs::file_time_type time = fs::last_write_time(folder / "plan.json", missing);
  if (!missing) runs->push_back({folder, time});
}

// Adds the runs in subfolders of `parent`.
void AddRunsOf(const fs::path& parent, std::vector<FoundRun>* runs) {
  if (!IsOwnFolder(parent)) return;
  ForEachIn(parent, [&](const fs::path& run) {
    if (IsOwnFolder(run)) AddRun(run, runs);
  });
}

constexpr std::size_t kMostOfAPlan = std::size_t{1} << 30;

bool StartedIn(const fs::path& folder, const fs::path& run) {
  const auto plan = ParseJson(ReadForeignFile(run / "plan.json", kMostOfAPlan));
  if (!plan.is_object() || !plan.contains("processes") || !plan["processes"].is_array()) return false;
  return std::ranges::any_of(plan["processes"], [&](const Json& process) {
    return process.is_object() && process.contains("cwd") && process["cwd"] == folder.string();
  });
}

}  // namespace

std::optional<fs::path> NewestRunIn(const fs::path& folder) {
  std::error_code none;
  if (fs::exists(folder / "plan.json", none) || fs::exists(folder / "verdict.json", none)) return std::nullopt;
  std::vector<FoundRun> found;
  AddRun(folder / "latest", &found);
  if (found.empty() && fs::is_directory(folder, none)) {
    ForEachIn(folder, [&](const fs::path& job) { AddRun(job / "latest", &found); });
  }
  const auto newest = std::ranges::max_element(found, {}, &FoundRun::time);
  return newest == found.end() ? std::nullopt : std::optional(newest->folder);
}

std::optional<fs::path> LatestRun(const fs::path& folder, const fs::path& temp) {
  std::vector<FoundRun> here, elsewhere;
  ForEachIn(folder / "runs", [&](const fs::path& job) { AddRun(job / "latest", &here); });
  ForEachIn(folder, [&](const fs::path& logs) {
    if (logs.filename() != "runs") AddRunsOf(logs, &here);
  });
  ForEachIn(temp, [&](const fs::path& logs) {
    if (logs.filename().string().starts_with("torchelastic_")) AddRunsOf(logs, &elsewhere);
  });
  const fs::path state = fs::path(job::RunDir::PatternElsewhere()).parent_path().parent_path();
  if (!state.empty()) ForEachIn(state, [&](const fs::path& job) { AddRunsOf(job, &elsewhere); });
  const auto newer = [](const FoundRun& a, const FoundRun& b) { return a.time > b.time; };
  std::ranges::sort(elsewhere, newer);
  const auto ours =
      std::ranges::find_if(elsewhere, [&](const FoundRun& run) { return StartedIn(folder, run.folder); });
  if (ours != elsewhere.end()) here.push_back(*ours);
  const auto newest = std::ranges::min_element(here, newer);
  return newest == here.end() ? std::nullopt : std::optional(newest->folder);
}

}  // namespace dtrun::cli
