// The folder of one run: what was started, what it printed, how it ended.
//
// Created once by the agent before anything starts. Written by the loop thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::agent {

class RunDir {
 public:
  using Time = std::chrono::system_clock::time_point;

  // Expands {job} and {time} ("20261121-003015", UTC) in `pattern`, an absolute path, and
  // creates that folder. A time that is taken gets "-2", "-3", ...; without {time} an
  // existing folder is used again. When the pattern ends in {time}, a link "latest" beside
  // the folder points to it.
  static Result<RunDir> Create(const std::string& pattern, const std::string& job, Time now);

  const std::filesystem::path& path() const { return path_; }
  // Empty, or one line about the link that could not be made; the run goes on without it.
  const std::string& note() const { return note_; }

  // Replaces the file `name`. Errors name the file.
  Status Write(const std::string& name, std::string_view content) const;

 private:
  std::filesystem::path path_;
  std::string note_;
};

}  // namespace dtrun::agent
