// Where the first rank of this host that crashed was: from the stack that it printed, its core file, or the
// kernel's log.
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
#include "core/stacks/kernel_log.h"

namespace dtrun::node {

class Crashes {
 public:
  // Output of a rank, of which the end is kept.
  void Printed(int rank, std::string_view bytes);
  struct Process {
    pid_t pid = 0;
    std::filesystem::path folder;   // its working folder
    std::filesystem::path program;  // the file that it ran; empty: unknown
  };
  // Only the first end by a signal of a crash counts.
  void Ended(int rank, const Process& process, const process::Ending& ending);
  // Runs a tool that reads debug information, for `patience` at most, if a rank has crashed. After the last
  // call of Printed.
  std::vector<protocol::CrashedAt> Look(std::chrono::milliseconds patience);

 private:
  struct First {
    int rank = 0;
    Process process;
    int signal = 0;
    bool has_core = false;
  };

  const std::filesystem::file_time_type begun_ = std::filesystem::file_time_type::clock::now();
  stacks::KernelLog log_;
  std::map<int, std::string> printed_;
  std::optional<First> first_;
};

}  // namespace dtrun::node
