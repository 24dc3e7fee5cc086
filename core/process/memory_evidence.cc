#include "core/process/memory_evidence.h"

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/binding/group_limits.h"

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;

// Candidate files, most precise first.
std::vector<fs::path> Counters(const fs::path& root, const fs::path& group) {
  std::vector<fs::path> files;
  if (!group.empty()) files.push_back(group);
  for (const auto& [controller, file] : {std::pair("memory", "memory.oom_control"), {"", "memory.events"}}) {
    const std::vector<fs::path> folders = binding::GroupFolders(root, controller);
    for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) files.push_back(*folder / file);
  }
  files.push_back(root / "proc/vmstat");
  return files;
}

std::optional<std::uint64_t> ReadCounter(const fs::path& file) {
  std::ifstream stream(file);
  std::string name;
  for (std::uint64_t value = 0; stream >> name >> value;) {
    if (name == "oom_kill") return value;
  }
  return std::nullopt;
}

}  // namespace

MemoryEvidence::MemoryEvidence(const fs::path& root, const fs::path& group) {
  for (const fs::path& file : Counters(root, group)) {
    before_ = ReadCounter(file);
    if (!before_) continue;
    counter_ = file;
    return;
  }
}

bool MemoryEvidence::Rose() const {
  if (!before_) return false;
  const auto now = ReadCounter(counter_);
  return now && *now > *before_;
}

}  // namespace dtrun::process
