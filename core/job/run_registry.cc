#include "core/job/run_registry.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <set>
#include <utility>

#include "core/base/number.h"
#include "core/base/own_file.h"
#include "core/base/read_file.h"
#include "core/base/text.h"

namespace dtrun::job {
namespace {

namespace fs = std::filesystem;

constexpr char kFolderOfLinks[] = "jobs";
constexpr std::size_t kStampSize = std::string_view("20261128-211507.042").size();

std::string ThisHost() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "-";
  std::string host(name.data());
  std::ranges::replace(host, '/', '-');
  return host;
}

bool IsOurs(int folder) {
  struct stat info {};
  return ::fstat(folder, &info) == 0 && info.st_uid == ::geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Whether the folder above belongs to another user: with that user's HOME, as `sudo` may leave it, root would
// make folders that the user cannot change.
bool IsHomeOfAnother(fs::path folder) {
  struct stat info {};
  while (::stat(folder.c_str(), &info) != 0) {
    if (!folder.has_relative_path()) return true;
    folder = folder.parent_path();
  }
  return info.st_uid != ::geteuid() && info.st_uid != 0;
}

// A system user's HOME may be a folder that does not exist, and dtrun does not make it.
bool HasHome() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  struct stat info {};
  return (state != nullptr && *state == '/') || (home != nullptr && ::stat(home, &info) == 0);
}

// The folder of the links; empty: there is none.
UniqueFd OpenLinks(bool make) {
  const fs::path state = StateFolder();
  if (state.empty() || !HasHome() || IsHomeOfAnother(state)) return {};
  const Result<UniqueFd> above = OpenFolder(state, make);
  if (!above) return {};
  UniqueFd links;
  if (make) {
    Result<UniqueFd> made = EnterFolderAt(above->get(), state, kFolderOfLinks, kPrivateFolder);
    if (made) links = *std::move(made);
  } else {
    links = UniqueFd(::openat(above->get(), kFolderOfLinks, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (links && !IsOurs(links.get())) links.Reset();
  return links;
}

// Ascending, so by time.
std::vector<std::string> LinksIn(int folder) {
  std::vector<std::string> names = NamesIn(folder);
  std::erase_if(names, [](const std::string& name) { return !IsDigit(name.front()); });
  std::ranges::sort(names);
  return names;
}

fs::path TargetOf(int folder, const std::string& name) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = ::readlinkat(folder, name.c_str(), target.data(), target.size());
  return size <= 0 ? fs::path() : fs::path(std::string(target.data(), static_cast<std::size_t>(size)));
}

bool IsGone(const fs::path& folder) {
  struct stat info {};
  return ::stat(folder.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

}  // namespace

fs::path StateFolder() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  if (state != nullptr && *state == '/') return fs::path(state) / "dtrun";
  if (home != nullptr && *home == '/') return fs::path(home) / ".local/state/dtrun";
  return {};
}

std::optional<RegisteredRun> ReadLinkName(std::string_view name, std::string_view host) {
  if (name.size() <= kStampSize || name[kStampSize] != '-') return std::nullopt;
  const std::string_view stamp = name.substr(0, kStampSize);
  std::string_view rest = name.substr(kStampSize + 1);
  const std::size_t at = rest.rfind('@');
  const std::size_t dash = rest.substr(0, at).rfind('-');
  if (at == rest.npos || dash == rest.npos || dash == 0 || rest.substr(at + 1) != host) return std::nullopt;
  const auto pid = NumberOf<pid_t>(rest.substr(dash + 1, at - dash - 1));
  std::tm time{};
  const std::string text(stamp);
  const char* const end = ::strptime(text.c_str(), "%Y%m%d-%H%M%S", &time);
  if (!pid || end == nullptr || *end != '.') return std::nullopt;
  const auto milliseconds = NumberOf<int>(std::string_view(end + 1));
  if (!milliseconds) return std::nullopt;
  RegisteredRun run;
  run.job = rest.substr(0, dash);
  run.pid = *pid;
  run.began =
      std::chrono::system_clock::from_time_t(::timegm(&time)) + std::chrono::milliseconds(*milliseconds);
  return run;
}

void Register(const fs::path& run, const std::string& job, RegisteredRun::Time now) {
  const UniqueFd links = OpenLinks(true);
  if (!links) return;
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  const std::string name =
      fmt::format("{:%Y%m%d-%H%M%S}.{:03}-{}-{}@{}", fmt::gmtime(std::time_t{since / 1000}), since % 1000,
                  job, ::getpid(), ThisHost());
  if (::symlinkat(run.c_str(), links.get(), name.c_str()) != 0) return;
  const std::vector<std::string> names = LinksIn(links.get());
  for (std::size_t i = 0; i + kMostRegistered < names.size(); ++i) {
    struct stat info {};
    if (::fstatat(links.get(), names[i].c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode))
      (void)::unlinkat(links.get(), names[i].c_str(), 0);
  }
}

bool MayRun(const RegisteredRun& run) {
  return FirstLineOf(fmt::format("/proc/{}/comm", run.pid)).starts_with("dtrun");
}

std::vector<RegisteredRun> RegisteredRuns() {
  std::vector<RegisteredRun> runs;
  const UniqueFd links = OpenLinks(false);
  if (!links) return runs;
  const std::string host = ThisHost();
  std::set<fs::path> seen;
  std::vector<std::string> names = LinksIn(links.get());
  std::ranges::reverse(names);
  for (const std::string& name : names) {
    std::optional<RegisteredRun> run = ReadLinkName(name, host);
    if (!run) continue;
    run->folder = TargetOf(links.get(), name);
    if (!run->folder.is_absolute()) continue;
    if (IsGone(run->folder) && !MayRun(*run)) {
      (void)::unlinkat(links.get(), name.c_str(), 0);
      continue;
    }
    run->link = StateFolder() / kFolderOfLinks / name;
    if (seen.insert(run->folder).second) runs.push_back(*std::move(run));
  }
  return runs;
}

}  // namespace dtrun::job
