#include "tools/dtrun/find_run.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <vector>

#include "core/base/json.h"
#include "core/base/read_file.h"
#include "core/base/text.h"
#include "core/job/run_dir.h"
#include "core/verdict/event_log.h"

namespace dtrun::cli {

namespace fs = std::filesystem;

namespace {

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

// Adds `folder` with its start time, if it is a run. One that did not start has no plan: then the time is
// that of its verdict or, while it waits for its hosts, of its last event.
void AddRun(const fs::path& folder, std::vector<FoundRun>* runs) {
  for (const char* const record : {"plan.json", "verdict.json", verdict::kEventsFile}) {
    std::error_code missing;
    const fs::file_time_type time = fs::last_write_time(folder / record, missing);
    if (!missing) return runs->push_back({folder, time});
  }
}

// Adds the runs in subfolders of `parent`.
void AddRunsOf(const fs::path& parent, std::vector<FoundRun>* runs) {
  if (!IsOwnFolder(parent)) return;
  ForEachIn(parent, [&](const fs::path& run) {
    if (IsOwnFolder(run)) AddRun(run, runs);
  });
}

constexpr std::size_t kMostOfAPlan = std::size_t{1} << 30;

// Whether a run without a plan is waiting for its hosts, and its dtrun runs in `folder`.
bool JoinsIn(const fs::path& folder, const fs::path& run) {
  const std::vector<job::RegisteredRun> runs = job::RegisteredRuns();
  const auto found = std::ranges::find(runs, run, &job::RegisteredRun::folder);
  std::error_code gone;
  return found != runs.end() && IsLiveRun(*found) &&
         fs::read_symlink(fmt::format("/proc/{}/cwd", found->pid), gone) == folder;
}

bool StartedIn(const fs::path& folder, const fs::path& run) {
  std::error_code none;
  if (!fs::exists(run / "plan.json", none)) return JoinsIn(folder, run);
  const auto plan = ParseJson(ReadForeignFile(run / "plan.json", kMostOfAPlan));
  if (!plan.is_object() || !plan.contains("processes") || !plan["processes"].is_array()) return false;
  return std::ranges::any_of(plan["processes"], [&](const Json& process) {
    return process.is_object() && process.contains("cwd") && process["cwd"] == folder.string();
  });
}

// The temporary folder, found as mkstemp and torchrun find it.
fs::path TempFolder() {
  const char* const named = std::getenv("TMPDIR");
  return named == nullptr || *named == '\0' ? "/tmp" : named;
}

// The newest run started from the current folder, wherever its records are: runs/JOB/latest, a folder of
// `dtrun torchrun --log-dir` here, and runs kept elsewhere: by `dtrun torchrun` in the temporary folder, or
// in the user's state folder because this one was not writable. Temporary folders are shared, so only this
// user's own folders count there. Unset: there is none.
std::optional<fs::path> LatestRun() {
  std::error_code gone;
  const fs::path folder = fs::current_path(gone);
  std::vector<FoundRun> here, elsewhere;
  ForEachIn(folder / "runs", [&](const fs::path& job) { AddRun(job / "latest", &here); });
  ForEachIn(folder, [&](const fs::path& logs) {
    if (logs.filename() != "runs") AddRunsOf(logs, &here);
  });
  ForEachIn(TempFolder(), [&](const fs::path& logs) {
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

Result<fs::path> FindLatest(const std::vector<job::RegisteredRun>& runs, Needs needs) {
  const std::optional<fs::path> here = LatestRun();
  if (here && (needs != Needs::kLiveRun || job::IsLive(*here) != std::optional(false))) return *here;
  std::vector<const job::RegisteredRun*> live;
  for (const job::RegisteredRun& run : runs) {
    if (IsLiveRun(run)) live.push_back(&run);
  }
  if (live.size() == 1 && needs != Needs::kRunOfThisFolder) return live.front()->folder;
  if (here) return *here;
  return Error{
      DTRUN_NOT_FOUND,
      fmt::format("no job was started in this folder{}; name the job ('dtrun ps' lists them) or its run "
                  "folder (line 'logs' of its header)",
                  live.empty() ? "" : fmt::format(", and {} live elsewhere", live.size()))};
}

// Whether the job was started in the current folder, or keeps its run below it.
bool IsOfThisFolder(const fs::path& run) {
  std::error_code gone;
  const fs::path here = fs::current_path(gone);
  return !gone && (StartedIn(here, run) || run.string().starts_with(here.string() + "/"));
}

// "job", "job/20261128-211507", "20261128-211507".
bool IsNamed(const job::RegisteredRun& run, const std::string& word) {
  return run.job == word || run.folder == word || run.folder.string().ends_with("/" + word);
}

Result<fs::path> Search(const std::string& word, Needs needs) {
  std::error_code none;
  const std::vector<job::RegisteredRun> runs = job::RegisteredRuns();
  if (word.empty() || word == "latest") return FindLatest(runs, needs);
  // A folder of the job's name, for example of its sources, may hold no run.
  const bool is_path = word.find('/') != std::string::npos;
  if (fs::is_directory(word, none)) {
    if (const auto newest = NewestRunIn(word)) return *newest;
    if (is_path || IsRun(word)) return fs::path(word);
  }
  if (const auto named = RunNamed(word)) return *named;
  if (fs::is_directory(word, none)) return fs::path(word);
  std::vector<std::string> names;
  for (const job::RegisteredRun& run : runs) names.push_back(run.job);
  const auto nearest = Nearest(word, names);
  return Error{
      DTRUN_NOT_FOUND,
      fmt::format("there is no job '{0}': neither a folder '{0}' here nor a run of that name{1}; 'dtrun ps "
                  "--all' lists the jobs of this user on this host",
                  word, nearest ? fmt::format("; did you mean '{}'?", *nearest) : "")};
}

}  // namespace

bool IsRun(const fs::path& folder) {
  std::error_code none;
  return fs::exists(folder / "plan.json", none) || fs::exists(folder / "verdict.json", none);
}

std::optional<fs::path> NewestRunIn(const fs::path& folder) {
  std::error_code none;
  if (IsRun(folder)) return std::nullopt;
  std::vector<FoundRun> found;
  AddRun(folder / "latest", &found);
  if (found.empty() && fs::is_directory(folder, none)) {
    ForEachIn(folder, [&](const fs::path& job) { AddRun(job / "latest", &found); });
  }
  if (found.empty()) AddRunsOf(folder, &found);
  const auto newest = std::ranges::max_element(found, {}, &FoundRun::time);
  return newest == found.end() ? std::nullopt : std::optional(newest->folder);
}

std::vector<fs::path> RunsBelow(const fs::path& folder) {
  std::vector<FoundRun> found;
  ForEachIn(folder, [&](const fs::path& job) { AddRunsOf(job, &found); });
  std::vector<fs::path> runs;
  for (FoundRun& run : found) {
    if (IsRun(run.folder)) runs.push_back(std::move(run.folder));  // not one that waits for its hosts
  }
  return runs;
}

bool IsLiveRun(const job::RegisteredRun& run) { return job::IsLive(run.folder).value_or(job::MayRun(run)); }

std::optional<fs::path> RunNamed(const std::string& word) {
  const std::vector<job::RegisteredRun> runs = job::RegisteredRuns();
  const auto named = [&](const job::RegisteredRun& run) { return IsNamed(run, word); };
  const auto live =
      std::ranges::find_if(runs, [&](const job::RegisteredRun& run) { return named(run) && IsLiveRun(run); });
  if (live != runs.end()) return live->folder;
  if (word.find_first_of(" \t\n") == word.npos) {
    if (const auto newest = NewestRunIn(fs::path("runs") / word)) return newest;
  }
  const auto past = std::ranges::find_if(runs, named);
  return past == runs.end() ? std::nullopt : std::optional(past->folder);
}

Result<fs::path> FindRun(const std::string& word, Needs needs) {
  Result<fs::path> found = Search(word, needs);
  std::error_code none;
  if (!found || fs::exists(*found, none) || none) return found;  // an error: it cannot be told here
  return Error{
      DTRUN_NOT_FOUND,
      fmt::format("the run folder '{}' was removed; 'dtrun ps' tells how to end its job, if that still runs",
                  found->string())};
}

Result<fs::path> FindOnlyLiveRun(const std::string& word) {
  std::error_code none;
  const bool any = word.empty() || word == "latest";
  if (!any && fs::is_directory(word, none)) return FindRun(word);
  std::string folders;
  std::vector<fs::path> live;
  for (const job::RegisteredRun& run : job::RegisteredRuns()) {
    if (!(any || IsNamed(run, word)) || !IsLiveRun(run)) continue;
    live.push_back(run.folder);
    folders += (folders.empty() ? "" : ", ") + run.folder.string();
  }
  if (live.size() == 1 && (!any || IsOfThisFolder(live.front()))) return live.front();
  if (live.size() == 1)
    return Error{
        DTRUN_FAILED_PRECONDITION,
        fmt::format("the only live job was started in another folder; name it: dtrun stop {}", folders)};
  if (!live.empty()) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("{} live jobs{}: {}; name one by its run folder", live.size(),
                             any ? "" : fmt::format(" are named '{}'", word), folders)};
  }
  const Result<fs::path> past = FindRun(word);
  if (!past || job::IsLive(*past) != std::optional(false)) return past;  // one that is not registered
  return Error{DTRUN_NOT_FOUND,
               fmt::format("the newest run{1}, in '{0}', has ended; 'dtrun explain {0}' tells how",
                           past->string(), any ? "" : " of that name")};
}

Status MayRead(const fs::path& path) {
  struct stat info {};
  const bool folder = ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  if (::access(path.c_str(), folder ? R_OK | X_OK : R_OK) == 0 || errno != EACCES) return {};
  const std::string owner = ::stat(path.c_str(), &info) == 0
                                ? fmt::format("it belongs to user {}", info.st_uid)
                                : "a parent folder denies access";
  return Error{DTRUN_FAILED_PRECONDITION,
               fmt::format("'{}' cannot be read: permission denied, {}; ask its owner, who can "
                           "share the next run's folder by logs.mode",
                           path.string(), owner)};
}

void AddJobWord(CLI::App* verb, std::string* to, const char* description) {
  const auto named = [](const std::string& word) {
    return word.empty() ? std::string("is empty; leave it out for the newest, or name the job")
                        : std::string();
  };
  verb->add_option("JOB", *to, description)->type_name("")->check(named);
}

}  // namespace dtrun::cli
