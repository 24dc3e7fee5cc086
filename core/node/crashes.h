// Where the first rank of this host that crashed was: from the stack that it printed, or from its core file.
//
// Owned by the local host; loop thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/process/ending.h"
#include "core/protocol/rank_messages.h"

namespace dtrun::node {

class Crashes {
 public:
  // Output of a rank, of which the end is kept.
  void Printed(int rank, std::string_view bytes);
  // Only the first end by a signal of a crash counts. `folder`: the working folder of its process.
  void Ended(int rank, pid_t pid, const process::Ending& ending, const std::filesystem::path& folder);
  // Runs a tool that reads debug information, for `patience` at most, if a rank has crashed. After the last
  // call of Printed.
  std::vector<protocol::CrashedAt> Look(std::chrono::milliseconds patience) const;

 private:
  struct First {
    int rank = 0;
    pid_t pid = 0;
    int signal = 0;
    bool has_core = false;
    std::filesystem::path folder;
  };

  const std::filesystem::file_time_type begun_ = std::filesystem::file_time_type::clock::now();
  std::map<int, std::string> printed_;
  std::optional<First> first_;
};

}  // namespace dtrun::node
