#include "core/process/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <vector>

#include "core/base/own_file.h"
#include "core/base/read_file.h"
#include "core/process/process.h"
#include "core/process/runtime_dir.h"

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// How long a group may take to become empty after SIGKILL.
constexpr std::chrono::seconds kEmptyWithin{2};
// The group that holds dtrun itself while its sibling has limits.
constexpr std::string_view kLauncher = "-launcher";

// 0 or an errno.
int Write(const fs::path& file, const std::string& text) {
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return errno;
  return ::write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
}

bool HasWord(const fs::path& file, const std::string& word) {
  std::istringstream words(ReadKernelFile(file.string()));
  for (std::string one; words >> one;) {
    if (one == word) return true;
  }
  return false;
}

std::vector<pid_t> Members(const fs::path& group) {
  std::vector<pid_t> pids;
  std::istringstream lines(ReadKernelFile((group / "cgroup.procs").string()));
  for (pid_t pid; lines >> pid;) pids.push_back(pid);
  return pids;
}

bool Populated(const fs::path& group) {
  return ReadKernelFile((group / "cgroup.events").string()).find("populated 1") != std::string::npos;
}

// Removes the groups that the job made below it first.
void RemoveTree(const fs::path& group) {
  if (::rmdir(group.c_str()) == 0) return;
  for (const fs::path& entry : EntriesOf(group)) {
    struct stat info {};
    if (::lstat(entry.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) RemoveTree(entry);
  }
  ::rmdir(group.c_str());
}

void KillAndRemove(const fs::path& group) {
  Write(group / "cgroup.kill", "1");
  const auto deadline = Clock::now() + kEmptyWithin;
  const UniqueFd events(::open((group / "cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  while (Populated(group) && Clock::now() < deadline) {
    pollfd changed{events.get(), POLLPRI, 0};
    ::poll(&changed, 1, 20);
  }
  RemoveTree(group);
}

// Whether dtrun may move this process out of its group and back: dtrun, its guard and its descendants.
bool IsOurs(pid_t pid, pid_t guard) {
  if (pid == ::getpid() || pid == guard) return true;
  const std::vector<Process> below = Descendants(::getpid());
  return std::ranges::find(below, pid, &Process::pid) != below.end();
}

// Makes a group that no other dtrun sees as stale before it is locked. Empty if the folder cannot be made.
UniqueFd MakeLocked(const fs::path& path) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return {};
    UniqueFd folder = OpenLocked(path);
    struct stat held {};
    struct stat there {};
    if (folder && ::fstat(folder.get(), &held) == 0 && ::stat(path.c_str(), &there) == 0 &&
        held.st_ino == there.st_ino) {
      return folder;
    }
    ::poll(nullptr, 0, 1);  // another dtrun considered it stale before it was locked, and is removing it
  }
  return {};
}

bool IsLauncher(const std::string& name) {
  return name.ends_with(kLauncher) && IsRuntimeDirName(name.substr(0, name.size() - kLauncher.size()));
}

Error NoLimit(const fs::path& parent, const std::string& why) {
  return Error::Of(DTRUN_UNSUPPORTED,
                   "job.memory cannot be enforced: {} (cgroup '{}'); start dtrun in a group of its own, "
                   "`systemd-run --user --scope -p Delegate=yes dtrun ...`, or unset job.memory",
                   why, parent.string());
}

void MoveBack(const fs::path& parent, const std::string& name) {
  const fs::path launcher = parent / (name + std::string(kLauncher));
  if (::access(launcher.c_str(), F_OK) != 0) return;
  Write(parent / "cgroup.subtree_control", "-memory");
  for (const pid_t pid : Members(launcher)) Write(parent / "cgroup.procs", std::to_string(pid));
  ::rmdir(launcher.c_str());
}

// The kernel does not allow processes in the parent of a group with limits.
Status EnableMemory(const fs::path& parent, const std::string& name) {
  if (!HasWord(parent / "cgroup.controllers", "memory")) {
    return NoLimit(parent, "the memory controller of cgroup v2 is not available here");
  }
  const fs::path control = parent / "cgroup.subtree_control";
  if (HasWord(control, "memory") || Write(control, "+memory") == 0) return {};
  const pid_t guard = ::getppid();
  const std::vector<pid_t> members = Members(parent);
  for (const pid_t pid : members) {
    if (IsOurs(pid, guard)) continue;
    const auto process = ReadProcess(pid);
    return NoLimit(parent, fmt::format("process {} ({}) is in the same group as dtrun", pid,
                                       process ? process->name : "of another namespace"));
  }
  const fs::path launcher = parent / (name + std::string(kLauncher));
  if (::mkdir(launcher.c_str(), 0755) != 0) return NoLimit(parent, Error::System("mkdir", errno).text);
  for (const pid_t pid : members) Write(launcher / "cgroup.procs", std::to_string(pid));
  if (const int number = Write(control, "+memory"); number != 0) {
    MoveBack(parent, name);
    return NoLimit(parent, Error::System("enable the memory controller", number).text);
  }
  return {};
}

Status SetLimit(const fs::path& group, std::uint64_t limit) {
  if (const int number = Write(group / "memory.max", std::to_string(limit)); number != 0)
    return NoLimit(group, Error::System("write memory.max", number).text);
  Write(group / "memory.swap.max", "0");  // missing without swap accounting in the kernel
  return {};
}

}  // namespace

Result<fs::path> OwnCgroup(const fs::path& root) {
  const auto none = [](const char* why) { return Error{DTRUN_NOT_FOUND, why}; };
  std::string group;
  std::istringstream groups(ReadKernelFile((root / "proc/self/cgroup").string()));
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) group = line.substr(3);
  }
  if (group.empty()) return none("the kernel has no cgroup v2");
  if (const fs::path own = group; IsLauncher(own.filename().string())) group = own.parent_path().string();
  std::istringstream mounts(ReadKernelFile((root / "proc/self/mountinfo").string()));
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream fields(line);
    std::string skipped, top, point;
    fields >> skipped >> skipped >> skipped >> top >> point;
    if (top == "/") return fs::path(point) / fs::path(group).relative_path();
    if (group == top) return fs::path(point);
    if (group.starts_with(top + "/")) return fs::path(point) / group.substr(top.size() + 1);
  }
  return none("cgroup v2 is not mounted, or not the part that dtrun is in");
}

Result<std::unique_ptr<Cgroup>> Cgroup::Make(const fs::path& parent, const std::string& name,
                                             std::uint64_t memory_limit) {
  const fs::path path = parent / name;
  const auto refuse = [&](const std::string& why) {
    if (memory_limit != 0) return NoLimit(parent, why);
    return Error::Of(DTRUN_UNSUPPORTED, "{} (cgroup '{}')", why, parent.string());
  };
  // Without permission to move processes out of the parent, none can be started in a child group.
  if (::faccessat(AT_FDCWD, (parent / "cgroup.procs").c_str(), W_OK, AT_EACCESS) != 0)
    return refuse(Error::System("write cgroup.procs", errno).text);
  UniqueFd folder = MakeLocked(path);
  if (!folder) return refuse(Error::System("make a group", errno).text);
  std::unique_ptr<Cgroup> group(new Cgroup(path, std::move(folder)));
  if (FirstLineOf((path / "cgroup.type").string()) != "domain") return refuse("it is a threaded group");
  if (::access((path / "cgroup.kill").c_str(), W_OK) != 0) return refuse("the kernel is older than 5.14");
  if (memory_limit == 0) return group;
  if (Status enabled = EnableMemory(parent, name); !enabled) return enabled.error();
  if (Status limited = SetLimit(path, memory_limit); !limited) return limited.error();
  return group;
}

Cgroup::~Cgroup() {
  KillAndRemove(path_);
  MoveBack(path_.parent_path(), path_.filename().string());
}

void Cgroup::Kill() const { Write(path_ / "cgroup.kill", "1"); }

std::optional<std::uint64_t> Cgroup::MemoryPeak() const {
  std::istringstream text(ReadKernelFile((path_ / "memory.peak").string()));
  std::uint64_t bytes = 0;
  if (!(text >> bytes)) return std::nullopt;
  return bytes;
}

void RemoveCgroup(const fs::path& parent, const std::string& name) {
  if (::access((parent / name).c_str(), F_OK) == 0) KillAndRemove(parent / name);
  MoveBack(parent, name);
}

void RemoveStaleCgroups(const fs::path& parent) {
  for (const fs::path& entry : EntriesOf(parent)) {
    const std::string name = entry.filename().string();
    if (!IsRuntimeDirName(name)) continue;
    struct stat info {};
    if (::lstat(entry.c_str(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    const UniqueFd lock = OpenLocked(entry);
    if (!lock) continue;
    RemoveCgroup(parent, name);
  }
}

}  // namespace dtrun::process
