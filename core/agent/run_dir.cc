#include "core/agent/run_dir.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace dtrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTime = "{time}";
constexpr int kMostRunsPerSecond = 10000;

std::string Replace(std::string text, std::string_view what, std::string_view with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

Error Refuse(const fs::path& dir, std::string_view cause) {
  return Error{DTRUN_SYSTEM,
               fmt::format("cannot create the run directory '{}': {}; set logs.dir to a folder you "
                           "can write to",
                           dir.string(), cause)};
}

// Readers of "latest" find the old run or the new one, never nothing.
std::string LinkLatest(const fs::path& dir) {
  const fs::path link = dir.parent_path() / "latest";
  std::error_code error;
  const auto kind = fs::symlink_status(link, error).type();
  if (kind != fs::file_type::symlink && kind != fs::file_type::not_found) {
    return fmt::format("'{}' is not a link and was left alone", link.string());
  }
  const fs::path fresh = dir.parent_path() / (".latest-" + dir.filename().string());
  fs::create_symlink(dir.filename(), fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) return fmt::format("cannot link '{}' to this run: {}", link.string(), error.message());
  return {};
}

}  // namespace

Result<RunDir> RunDir::Create(const std::string& pattern, const std::string& job, Time now, mode_t mode) {
  const std::string named = Replace(pattern, "{job}", job);
  const bool timed = named.find(kTime) != std::string::npos;
  const std::string stamp =
      fmt::format("{:%Y%m%d-%H%M%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
  RunDir run;
  run.mode_ = mode;
  for (int attempt = 1; attempt <= kMostRunsPerSecond; ++attempt) {
    run.path_ = Replace(named, kTime, attempt == 1 ? stamp : fmt::format("{}-{}", stamp, attempt));
    if (!run.path_.has_filename()) run.path_ = run.path_.parent_path();
    std::error_code error;
    fs::create_directories(run.path_.parent_path(), error);
    if (error) return Refuse(run.path_, Error::System("its parent", error.value()).text);
    const int number = MakeOwnFolder(run.path_, mode);
    if (number == 0) {
      if (named.ends_with(kTime)) run.note_ = LinkLatest(run.path_);
      return std::move(run).Opened();
    }
    if (number == EEXIST && timed) continue;
    if (number == EEXIST && fs::is_directory(run.path_, error)) {
      if (::access(run.path_.c_str(), W_OK | X_OK) == 0) return std::move(run).Opened();
      return Refuse(run.path_, Error::System("it exists", errno).text);
    }
    return Refuse(run.path_, Error::System("mkdir", number).text);
  }
  return Refuse(run.path_, fmt::format("{} runs began in this second", kMostRunsPerSecond));
}

Result<RunDir> RunDir::Opened() && {
  folder_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_) return Refuse(path_, Error::System("open it", errno).text);
  if (const std::string who = WhoMayReplace(path_); !who.empty()) {
    if (!note_.empty()) note_ += "; ";
    note_ +=
        "warning: " + who + ", so others may replace this run's folder; set logs.dir to a place of your own";
  }
  return std::move(*this);
}

Status RunDir::Write(const std::string& name, std::string_view content) const {
  return ReplaceOwnFile(folder_.get(), path_, name, content, FileModeIn(mode_));
}

}  // namespace dtrun::agent
