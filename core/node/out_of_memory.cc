#include "core/node/out_of_memory.h"

#include <fmt/format.h>

#include "core/hosts/this_machine.h"

namespace dtrun::node {

std::vector<std::string> OutOfMemory::Lines(const process::Ending& ending) {
  const bool helper =
      !ending.out_of_memory && ending.failed() && !told_ && containment_.CountsMemory() && Seen();
  if (!helper && !ending.out_of_memory) return {};
  told_ = true;
  std::vector<std::string> lines;
  if (helper)
    lines.push_back(fmt::format(
        "dtrun: out of memory: the kernel killed a process that ranks on {} had started", hosts::HostName()));
  if (const std::string text = containment_.MemoryText(); !text.empty()) lines.push_back("dtrun: " + text);
  return lines;
}

}  // namespace dtrun::node
