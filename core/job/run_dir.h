// The folder of one run: what was started, its output, and how it ended.
//
// Created once by the agent before anything starts. Written by the loop thread. Private to the user unless
// logs.mode says otherwise. It is opened component by component (core/base/own_file.h), and its files are
// made and written through that descriptor. So neither another user's link nor a later change of the path
// redirects them.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/own_file.h"

namespace dtrun::job {

class RunDir {
 public:
  using Time = std::chrono::system_clock::time_point;

  // Expands {job} and {time} ("20261121-003015", UTC) in `pattern`, an absolute path, and creates that folder
  // with `mode`. If the time is taken, appends "-2", "-3", ... Without {time} it reuses an existing folder:
  // files of an earlier run move into "before-{time}" in it, and a run still in progress is an error. If the
  // pattern ends in {time}, a link "latest" next to the folder points to it.
  static Result<RunDir> Create(const std::string& pattern, const std::string& job, Time now,
                               mode_t mode = kPrivateFolder);

  // The same, or below PatternElsewhere, which note() then tells.
  static Result<RunDir> CreateOrElsewhere(const std::string& pattern, const std::string& job, Time now,
                                          mode_t mode);

  // For a job without a chosen folder in an unwritable current folder: a pattern below the user's state
  // folder (XDG Base Directory specification). Empty: the environment names no absolute folder.
  static std::string PatternElsewhere();

  const std::filesystem::path& path() const { return path_; }
  mode_t mode() const { return mode_; }
  // Empty, or one line about a link that could not be made, an earlier run, or other users who could replace
  // the folder; the run continues.
  const std::string& note() const { return note_; }

  // Stays open while this object lives.
  int descriptor() const { return folder_.get(); }

  // Empty, or, if the path no longer leads to the folder, one line with its new location.
  std::string Moved() const;

  // Atomically replaces `file`, an absolute path, with one that contains path(). Empty: does nothing.
  Status TellPath(const std::filesystem::path& file) const;

  // Atomically replaces the file `name`. Errors name the file.
  Status Write(const std::string& name, std::string_view content) const;

 private:
  Result<RunDir> Opened(UniqueFd folder) &&;
  Result<RunDir> UsedAgain(UniqueFd folder, const std::string& stamp) &&;
  // Locks out other runs while this object lives, if the file system has locks.
  Status Lock();

  std::filesystem::path path_;
  UniqueFd folder_;
  UniqueFd lock_;
  mode_t mode_ = kPrivateFolder;
  std::string note_;
};

// Whether a job keeps its records in the run folder `run` at this moment. Nullopt: the file system has no
// locks, or the folder cannot be read.
std::optional<bool> IsLive(const std::filesystem::path& run);

// Whether RemoveRun would remove the folder. Errors: the run is live or that cannot be told, the folder is no
// run's or another user's, or a file anywhere in it is none that dtrun writes.
Status MayRemoveRun(const std::filesystem::path& run);
// Removes the folder of a run that has ended, whole, and the link `latest` next to it if that leads to it.
Status RemoveRun(const std::filesystem::path& run);

// `text` for a terminal: the run's folder `folder` relative to the current folder, and its files by name
// only, because the text ends with the folder.
std::string ShownIn(std::string text, const std::string& folder);

}  // namespace dtrun::job
