// The folder of one run: what was started, what it printed, how it ended.
//
// Created once by the agent before anything starts. Written by the loop thread. Private to the user unless
// logs.mode says otherwise. It is opened step by step (core/base/own_folder.h), and all in it is made and
// written through what was opened: neither another user's link nor a later change of the path leads
// elsewhere.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/own_file.h"

namespace dtrun::job {

class RunDir {
 public:
  using Time = std::chrono::system_clock::time_point;

  // Expands {job} and {time} ("20261121-003015", UTC) in `pattern`, an absolute path, and
  // creates that folder. A time that is taken gets "-2", "-3", ...; without {time} an
  // existing folder is used again: what an earlier run has left there goes into "before-{time}" in it, and a
  // run that has not ended is an error. When the pattern ends in {time}, a link "latest"
  // beside the folder points to it. A new folder has `mode`.
  static Result<RunDir> Create(const std::string& pattern, const std::string& job, Time now,
                               mode_t mode = kPrivateFolder);

  // For a job that chose no folder and whose current folder cannot be written: a pattern below the user's folder of
  // state, of the XDG Base Directory specification. Empty: the environment names no absolute folder.
  static std::string PatternElsewhere();

  const std::filesystem::path& path() const { return path_; }
  mode_t mode() const { return mode_; }
  // Empty, or one line about a link that could not be made, an earlier run, or others who may replace the
  // folder; the run goes on.
  const std::string& note() const { return note_; }

  // Open for as long as this lives.
  int descriptor() const { return folder_.get(); }

  // Empty, or one line: where the folder is, when its path leads to it no more.
  std::string Moved() const;

  // Replaces `file`, an absolute path, by one with path(), whole or not at all; empty: nowhere.
  Status TellPath(const std::filesystem::path& file) const;

  // Replaces the file `name`, whole or not at all. Errors name the file.
  Status Write(const std::string& name, std::string_view content) const;

 private:
  Result<RunDir> Opened(UniqueFd folder) &&;
  Result<RunDir> UsedAgain(UniqueFd folder, const std::string& stamp) &&;
  // Keeps other runs away for as long as this lives, where the file system has locks.
  Status Lock();

  std::filesystem::path path_;
  UniqueFd folder_;
  UniqueFd lock_;
  mode_t mode_ = kPrivateFolder;
  std::string note_;
};

// `text` as a terminal shows it: `folder`, of a run, relative to the current folder, and files of it that are
// told by name alone, because the text ends with the folder.
std::string ShownIn(std::string text, const std::string& folder);

}  // namespace dtrun::job
