#include "core/process/memory_evidence.h"

#include <fstream>
#include <string>
#include <vector>

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;

// Candidates, the most precise first. In a container the group's own path is often not
// mounted, and the mount's root is the group.
std::vector<fs::path> Counters(const fs::path& root, const fs::path& group) {
  std::vector<fs::path> files;
  if (!group.empty()) files.push_back(group);
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path own = fs::path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) {
      files.push_back(root / "sys/fs/cgroup" / own / "memory.events");
    } else if (controllers == "memory") {
      files.push_back(root / "sys/fs/cgroup/memory" / own / "memory.oom_control");
      files.push_back(root / "sys/fs/cgroup/memory/memory.oom_control");
    }
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
