#include "core/binding/group_limits.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/read_file.h"
#include "core/base/text.h"

namespace dtrun::binding {
namespace {

namespace fs = std::filesystem;

// Version 1 uses a value at least this large for "no limit": the largest number of bytes in whole
// pages.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

bool HasWord(std::string_view list, std::string_view word) {
  return std::ranges::count(Split(list, ','), word) > 0;
}

// The path of this process's group in the hierarchy of `controller`; empty `controller`: version 2.
std::optional<std::string> GroupOf(const fs::path& root, const std::string& controller) {
  std::istringstream lines(ReadKernelFile((root / "proc/self/cgroup").string()));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : HasWord(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

}  // namespace

std::vector<fs::path> GroupFolders(const fs::path& root, const std::string& controller) {
  const std::optional<std::string> group = GroupOf(root, controller);
  std::vector<fs::path> folders;
  std::istringstream lines(ReadKernelFile((root / "proc/self/mountinfo").string()));
  for (std::string line; group && folders.empty() && std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
    std::string skipped, top, at, kind, source, options;
    before >> skipped >> skipped >> skipped >> top >> at;
    after >> kind >> source >> options;
    if (controller.empty() ? kind != "cgroup2" : kind != "cgroup" || !HasWord(options, controller)) continue;
    const fs::path mounted = root / fs::path(at).relative_path();
    std::string below = *group;
    if (top != "/") below = below.starts_with(top) ? below.substr(top.size()) : "";
    fs::path folder = mounted;
    folders.push_back(folder);
    for (const fs::path& part : fs::path(below).relative_path()) {
      if (part == "..") break;  // the group is outside the mount
      folders.push_back(folder /= part);
    }
  }
  return folders;
}

namespace {

// nullopt for "max 100000" and "-1".
std::optional<double> NumberIn(std::istream& words) {
  double number = 0;
  return words >> number && number > 0 ? std::optional(number) : std::nullopt;
}
std::optional<double> NumberIn(const fs::path& file) {
  std::istringstream words(ReadKernelFile(file.string()));
  return NumberIn(words);
}

template <class Number>
void Least(std::optional<double> found, std::optional<Number>* to) {
  if (!found || *found >= static_cast<double>(kNoLimit)) return;
  const auto number = static_cast<Number>(*found);
  *to = *to ? std::min(**to, number) : number;
}

}  // namespace

int GroupLimits::whole_processors() const {
  if (!processors) return 0;
  return static_cast<int>(std::clamp(*processors, 1.0, double{std::numeric_limits<int>::max()}));
}

GroupLimits ReadGroupLimits(const fs::path& root) {
  GroupLimits out;
  const auto quota = [&](std::optional<double> time, std::optional<double> period) {
    if (time && period) Least(*time / *period, &out.processors);
  };
  for (const fs::path& folder : GroupFolders(root, "")) {
    std::istringstream words(ReadKernelFile((folder / "cpu.max").string()));
    const std::optional<double> time = NumberIn(words);
    quota(time, NumberIn(words));
    Least(NumberIn(folder / "memory.max"), &out.memory);
    Least(NumberIn(folder / "pids.max"), &out.tasks);
  }
  // The group's cpuset already respects its ancestors'.
  const auto read_cpuset = [&](const std::string& controller, const char* file) {
    const std::vector<fs::path> folders = GroupFolders(root, controller);
    if (out.cpuset.empty() && !folders.empty()) out.cpuset = FirstLineOf((folders.back() / file).string());
  };
  read_cpuset("", "cpuset.cpus.effective");
  read_cpuset("cpuset", "cpuset.effective_cpus");
  for (const fs::path& folder : GroupFolders(root, "cpu"))
    quota(NumberIn(folder / "cpu.cfs_quota_us"), NumberIn(folder / "cpu.cfs_period_us"));
  for (const fs::path& folder : GroupFolders(root, "memory"))
    Least(NumberIn(folder / "memory.limit_in_bytes"), &out.memory);
  for (const fs::path& folder : GroupFolders(root, "pids")) Least(NumberIn(folder / "pids.max"), &out.tasks);
  return out;
}

}  // namespace dtrun::binding
