#include "core/job/run_dir.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/own_file.h"
#include "core/base/result.h"
#include "core/base/text.h"
#include "core/job/run_registry.h"
#include "core/options/text.h"
#include "core/output/file_write.h"

namespace dtrun::job {
namespace {

constexpr int kMostTries = 1000;

bool IsOfARun(std::string_view name) {
  constexpr std::string_view kRecords[] = {
      "plan.json",   "config.json", "environment.json", "runtime.json", "verdict.json",  "network.json",
      "network.txt", "stacks.txt",  "control",          "calls.txt",    "metrics.jsonl", "metrics.url",
      "report.html", "events.log",  "events.1.log",     "dtrun.log",    "dtrun.1.log",   "dtrun.2.log"};
  constexpr std::string_view kOfRanks[] = {".out", ".err", ".trace"};
  if (std::ranges::find(kRecords, name) != std::end(kRecords)) return true;
  constexpr std::string_view kRank = "rank-", kGeneration = "generation-";
  if (name.starts_with(kGeneration)) return IsDigits(name.substr(kGeneration.size()));
  return name.starts_with(kRank) && std::ranges::any_of(kOfRanks, [&](std::string_view kind) {
           return name.ends_with(kind) &&
                  IsDigits(name.substr(kRank.size(), name.size() - kRank.size() - kind.size()));
         });
}

// The first name in the open folder, or in one of its folders of earlier generations and runs, that is of no
// run: "generation-1/model.pt". Empty: there is none.
std::string NotOfARunIn(int folder) {
  constexpr std::string_view kBefore = "before-";
  for (const std::string& name : NamesIn(folder)) {
    const bool before = name.starts_with(kBefore);
    if (!before && !IsOfARun(name)) return name;
    struct stat info {};
    if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const bool is_folder = S_ISDIR(info.st_mode);
    if (is_folder != (before || name.starts_with("generation-"))) return name;
    if (!is_folder) continue;
    const UniqueFd inner(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!inner) return name;
    if (const std::string other = NotOfARunIn(inner.get()); !other.empty()) return name + "/" + other;
  }
  return {};
}

bool IsThere(int folder, const char* name) {
  struct stat info {};
  return ::fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

std::vector<std::string> EntriesOfARun(int folder) {
  std::vector<std::string> names = NamesIn(folder);
  std::erase_if(names, [](const std::string& name) { return !IsOfARun(name); });
  return names;
}

// Moves records and logs of an earlier run, if any, into a new folder `name` with `mode` inside the open
// `folder` (`shown` is its name in errors). If the name is taken, it uses "name-2" and so on. Other files
// stay. Returns the new folder's name; empty: there was no earlier run.
Result<std::string> MoveEarlierRun(int folder, const std::string& shown, const std::string& name,
                                   mode_t mode) {
  const std::vector<std::string> names = EntriesOfARun(folder);
  const auto has = [&names](std::string_view one) { return std::ranges::find(names, one) != names.end(); };
  const bool of_a_run = has("verdict.json") || has("plan.json");
  if (has("config.json") && !of_a_run) {  // for example in a model's folder
    return Error{DTRUN_INVALID_ARGUMENT, "its config.json was not written by dtrun and would be replaced"};
  }
  if (!of_a_run) return std::string();
  std::string moved = name;
  UniqueFd made;
  for (int attempt = 2, number = 0; !made; ++attempt) {
    made = MakeFolderAt(folder, moved, mode, number);
    if (!made && (number != EEXIST || attempt > kMostTries))
      return Error::System(fmt::format("make '{}/{}' for the previous run", shown, moved), number);
    if (!made) moved = fmt::format("{}-{}", name, attempt);
  }
  for (const std::string& one : names) {
    if (::renameat(folder, one.c_str(), made.get(), one.c_str()) != 0)
      return Error::System(fmt::format("move '{}/{}' of the previous run to '{}'", shown, one, moved), errno);
  }
  return moved;
}

namespace fs = std::filesystem;

constexpr std::string_view kTime = "{time}";
constexpr int kMostRunsPerSecond = 10000;

Error Refuse(const fs::path& dir, std::string_view cause) {
  return Error::Of(DTRUN_SYSTEM,
                   "cannot create the run directory '{}': {}; set logs.dir to a folder you "
                   "can write to",
                   dir.string(), cause);
}

// Readers of "latest" always find the old run or the new one. `parent` is the open folder that contains
// `dir`.
std::string LinkLatest(int parent, const fs::path& dir) {
  const fs::path link = dir.parent_path() / "latest";
  struct stat info {};
  if (::fstatat(parent, "latest", &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(info.st_mode)) {
    return fmt::format("'{}' is not a link and was not changed", link.string());
  }
  const std::string fresh = ".latest-" + dir.filename().string();
  if (::symlinkat(dir.filename().c_str(), parent, fresh.c_str()) != 0 ||
      ::renameat(parent, fresh.c_str(), parent, "latest") != 0) {
    return Error::System(fmt::format("cannot link '{}' to this run", link.string()), errno).text;
  }
  return {};
}

// "/work/runs" for "/work/runs/{job}/{time}", the default; empty: the user's own pattern.
fs::path FolderOfAllRuns(const std::string& pattern) {
  constexpr std::string_view kDefault = "/runs/{job}/{time}";
  if (!pattern.ends_with(kDefault)) return {};
  return pattern.substr(0, pattern.size() - std::string_view("/{job}/{time}").size());
}

// Excludes a folder that dtrun has just made from the user's repository. Best effort.
void IgnoreInGit(const fs::path& folder) {
  const Result<UniqueFd> open = OpenFolder(folder);
  if (!open) return;
  const UniqueFd file(
      ::openat(open->get(), ".gitignore", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (file) static_cast<void>(output::WriteAll(file.get(), "*\n"));
}

// `parent`: the open folder that contains `run`.
Status MayRemove(int parent, const fs::path& run) {
  const auto kept = [&run](std::string_view why) {
    return Error::Of(DTRUN_BUSY, "'{}' {}", run.string(), why);
  };
  const UniqueFd folder(
      ::openat(parent, run.filename().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!folder || ::fstat(folder.get(), &info) != 0)
    return Error::System(fmt::format("open '{}'", run.string()), errno);
  if (info.st_uid != ::geteuid()) return kept("belongs to another user");
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0)
    return kept(errno == EWOULDBLOCK ? "is of a live job"
                                     : "may be of a live job: its file system has no locks");
  if (const std::string other = NotOfARunIn(folder.get()); !other.empty())
    return kept(fmt::format("has '{}', which dtrun did not write", other));
  if (!IsThere(folder.get(), "plan.json") && !IsThere(folder.get(), "verdict.json"))
    return kept("has neither a plan.json nor a verdict.json");
  return {};
}

}  // namespace

std::optional<bool> IsLive(const fs::path& run) {
  const UniqueFd folder(::open(run.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return std::nullopt;
  if (::flock(folder.get(), LOCK_SH | LOCK_NB) == 0) return false;
  return errno == EWOULDBLOCK ? std::optional(true) : std::nullopt;
}

Status MayRemoveRun(const fs::path& run) {
  const Result<UniqueFd> parent = OpenFolder(run.parent_path());
  return parent ? MayRemove(parent->get(), run) : Status(parent.error());
}

Status RemoveRun(const fs::path& run) {
  const Result<UniqueFd> parent = OpenFolder(run.parent_path());
  if (!parent) return parent.error();
  if (Status may = MayRemove(parent->get(), run); !may) return may;
  const std::string name = run.filename();
  // At once: a run is there as a whole, or it is gone.
  const std::string doomed = ".removed-" + name;
  if (::renameat(parent->get(), name.c_str(), parent->get(), doomed.c_str()) != 0)
    return Error::System(fmt::format("remove '{}'", run.string()), errno);
  std::error_code failure;
  fs::remove_all(fmt::format("/proc/self/fd/{}/{}", parent->get(), doomed), failure);
  if (failure) return Error::System(fmt::format("remove '{}'", run.string()), failure.value());
  std::array<char, NAME_MAX + 1> target;
  const ssize_t size = ::readlinkat(parent->get(), "latest", target.data(), target.size());
  if (size > 0 && name == std::string_view(target.data(), static_cast<std::size_t>(size)))
    (void)::unlinkat(parent->get(), "latest", 0);
  return {};
}

std::string ShownIn(std::string text, const std::string& folder) {
  const std::string shown = options::ShownPath(folder);
  text = ReplaceAll(std::move(text), "(all of it: " + folder + "/rank-", "(all of it: rank-");
  return shown == folder ? text : ReplaceAll(std::move(text), folder, shown);
}

Result<RunDir> RunDir::Create(const std::string& pattern, const std::string& job, Time now, mode_t mode) {
  const std::string named = ReplaceAll(pattern, "{job}", job);
  const bool timed = named.find(kTime) != std::string::npos;
  const std::string stamp =
      fmt::format("{:%Y%m%d-%H%M%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
  RunDir run;
  run.mode_ = mode;
  for (int attempt = 1; attempt <= kMostRunsPerSecond; ++attempt) {
    run.path_ = ReplaceAll(named, kTime, attempt == 1 ? stamp : fmt::format("{}-{}", stamp, attempt));
    if (!run.path_.has_filename()) run.path_ = run.path_.parent_path();
    if (!run.path_.has_filename()) return Refuse(run.path_, "it is the root of all folders");
    const fs::path runs = FolderOfAllRuns(pattern);
    std::error_code unknown;
    const bool fresh = !runs.empty() && !fs::exists(runs, unknown);
    const Result<UniqueFd> parent = OpenFolder(run.path_.parent_path(), true);
    if (!parent) return Refuse(run.path_, parent.error().text);
    if (fresh) IgnoreInGit(runs);
    int number = 0;
    UniqueFd made = MakeFolderAt(parent->get(), run.path_.filename().string(), mode, number);
    if (made) {
      if (named.ends_with(kTime)) run.note_ = LinkLatest(parent->get(), run.path_);
      return std::move(run).Opened(std::move(made));
    }
    if (number == EEXIST && timed) continue;
    if (number == EEXIST) {
      Result<UniqueFd> there = OpenFolder(run.path_);
      if (!there) return Refuse(run.path_, there.error().text);
      if (::faccessat(there->get(), ".", W_OK | X_OK, 0) != 0)
        return Refuse(run.path_, Error::System("it exists", errno).text);
      return std::move(run).UsedAgain(*std::move(there), stamp);
    }
    return Refuse(run.path_, Error::System("mkdir", number).text);
  }
  return Refuse(run.path_, fmt::format("{} runs began in this second", kMostRunsPerSecond));
}

Result<RunDir> RunDir::CreateOrElsewhere(const std::string& pattern, const std::string& job, Time now,
                                         mode_t mode) {
  Result<RunDir> dir = Create(pattern, job, now, mode);
  const std::string elsewhere = PatternElsewhere();
  if (dir || elsewhere.empty()) return dir;
  Result<RunDir> second = Create(elsewhere, job, now, mode);
  if (!second) return dir;
  second->note_ = fmt::format("warning: {}; this run uses '{}'{}{}", dir.error().text, second->path_.string(),
                              second->note_.empty() ? "" : "; ", second->note_);
  return second;
}

std::string RunDir::PatternElsewhere() {
  const std::string base = StateFolder().string();
  return base.empty() ? base : base + "/runs/{job}/{time}";
}

Result<RunDir> RunDir::UsedAgain(UniqueFd folder, const std::string& stamp) && {
  folder_ = std::move(folder);
  if (Status alone = Lock(); !alone) return alone.error();
  Result<std::string> moved =
      MoveEarlierRun(folder_.get(), path_.string(), "before-" + stamp, mode_ | S_IRWXU);
  if (!moved) return Refuse(path_, moved.error().text);
  if (!moved->empty())
    note_ = fmt::format("the previous run in '{}' is now in its folder '{}'", path_.string(), *moved);
  return std::move(*this).Opened(std::move(folder_));
}

Status RunDir::Lock() {
  lock_ = UniqueFd(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Programs that ask whether a run is live hold the lock for a moment (IsLive).
  constexpr int kTries = 20;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (!lock_ || ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return Error::Of(DTRUN_FAILED_PRECONDITION,
                   "a job that has not ended keeps its logs in '{}'; wait for it, or set logs.dir to "
                   "another folder, for example one with {{time}} at its end",
                   path_.string());
}

Result<RunDir> RunDir::Opened(UniqueFd folder) && {
  folder_ = std::move(folder);
  if (!lock_) {
    if (Status alone = Lock(); !alone) return alone.error();
  }
  if (const std::string who = WhoMayReplace(path_); !who.empty()) {
    if (!note_.empty()) note_ += "; ";
    note_ +=
        "warning: " + who + ", so others may replace this run's folder; set logs.dir to a place of your own";
  }
  return std::move(*this);
}

std::string RunDir::Moved() const {
  struct stat there {
  }, ours{};
  if (::fstat(folder_.get(), &ours) != 0) return {};
  const bool same =
      ::stat(path_.c_str(), &there) == 0 && there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
  if (same) return {};
  if (ours.st_nlink == 0)
    return fmt::format("'{}' was removed while the job ran, and its logs with it", path_.string());
  std::error_code unknown;
  const auto now = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", folder_.get()), unknown);
  return fmt::format("'{}' was moved while the job ran; the logs are in '{}'", path_.string(), now.string());
}

Status RunDir::TellPath(const fs::path& file) const {
  if (file.empty()) return {};
  const Result<UniqueFd> folder = OpenFolder(file.parent_path());
  if (!folder) return folder.error();
  struct stat there {};
  if (fstatat(folder->get(), file.filename().c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
    std::string what;
    if (!S_ISREG(there.st_mode))
      what = "is not a regular file";
    else if (there.st_uid != geteuid())
      what = fmt::format("is of uid {}", there.st_uid);
    if (!what.empty())
      return Error::Of(DTRUN_INVALID_ARGUMENT, "'{}' {}, and would be replaced; name a file of your own",
                       file.string(), what);
  }
  return ReplaceOwnFile(folder->get(), file.parent_path(), file.filename(), path_.string(), kPrivateFile);
}

Status RunDir::Write(const std::string& name, std::string_view content) const {
  return ReplaceOwnFile(folder_.get(), path_, name, content, FileModeIn(mode_));
}

}  // namespace dtrun::job
