#include "core/process/segments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/number.h"
#include "core/base/read_file.h"

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOfTorch = "torch_";
constexpr std::string_view kOfLoky = "sem.loky-";
constexpr std::string_view kOfOpenMp = "__KMP_REGISTERED_LIB_";

constexpr int kTold = SIGURG;  // its default action ends no process

bool IsOfALibrary(std::string_view name) {
  constexpr std::string_view kPrefixes[] = {
      kOfTorch,          // torch, sharing strategy file_system
      "psm_",            // Python's multiprocessing.shared_memory
      "sem.mp-",         // Python's multiprocessing.Lock and the like
      kOfLoky,           // joblib
      kOfOpenMp,         // LLVM's and Intel's OpenMP
      "nccl-",           // NCCL
      "cuda.shm.",       // CUDA between processes
      "ucx_shm_posix_",  // UCX
      "vader_segment.",  // Open MPI 4
      "sm_segment.",     // Open MPI 5
      "mpich_shar_tmp",  // MPICH
      "psm2_shm.",
      "psm3_shm.",  // Omni-Path
  };
  return std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

// The pid of the maker, if its library puts it into the name: torch_PID_…, sem.loky-PID-…,
// __KMP_REGISTERED_LIB_PID_….
std::optional<pid_t> MakerIn(std::string_view name) {
  for (const std::string_view before : {kOfTorch, kOfLoky, kOfOpenMp}) {
    if (!name.starts_with(before)) continue;
    name.remove_prefix(before.size());
    const std::optional<pid_t> pid = TakeNumber<pid_t>(&name);
    if (pid.value_or(0) > 0 && !name.empty()) return pid;
  }
  return std::nullopt;
}

bool Has(const std::vector<pid_t>& pids, pid_t pid) { return std::ranges::find(pids, pid) != pids.end(); }

}  // namespace

bool Maps(pid_t pid, const struct stat& file) {
  const std::string maps = ReadKernelFile(fmt::format("/proc/{}/maps", pid));
  const std::string entry =
      fmt::format(" {:02x}:{:02x} {} ", major(file.st_dev), minor(file.st_dev), file.st_ino);
  return maps.find(entry) != std::string::npos;
}

// Check descriptors first: a process may close one once it has mapped the file.
bool Holds(pid_t pid, const struct stat& file) {
  for (const auto& descriptor : EntriesOf(fmt::format("/proc/{}/fd", pid))) {
    struct stat open {};
    if (::stat(descriptor.c_str(), &open) == 0 && open.st_dev == file.st_dev && open.st_ino == file.st_ino)
      return true;
  }
  return Maps(pid, file);
}

std::vector<pid_t> ProcessesOfThisUser(const std::vector<pid_t>& excepted) {
  std::vector<pid_t> found;
  for (const auto& entry : EntriesOf("/proc")) {
    const pid_t pid = std::atoi(entry.filename().c_str());
    struct stat info {};
    if (pid > 0 && pid != ::getpid() && ::stat(entry.c_str(), &info) == 0 && info.st_uid == ::geteuid() &&
        std::ranges::find(excepted, pid) == excepted.end())
      found.push_back(pid);
  }
  return found;
}

bool IsOnlyHolder(int file) {
  if (::fcntl(file, F_SETLEASE, F_WRLCK) != 0) return false;
  ::fcntl(file, F_SETLEASE, F_UNLCK);
  return true;
}

Segments::Segments(fs::path folder)
    : folder_(std::move(folder)), watch_(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  const f_owner_ex this_thread{F_OWNER_TID, ::gettid()};
  sigset_t told;
  ::sigemptyset(&told);
  ::sigaddset(&told, kTold);
  ::pthread_sigmask(SIG_BLOCK, &told, nullptr);
  if (watch_ && ::fcntl(watch_.get(), F_SETSIG, kTold) == 0 &&
      ::fcntl(watch_.get(), F_SETOWN_EX, &this_thread) == 0 &&
      ::fcntl(watch_.get(), F_NOTIFY, DN_CREATE | DN_MULTISHOT) == 0)
    appeared_ = UniqueFd(::signalfd(-1, &told, SFD_CLOEXEC | SFD_NONBLOCK));
  for (const Found& found : Appeared()) before_.insert(found.info.st_ino);
}

std::vector<Segments::Found> Segments::Appeared() const {
  std::vector<Found> all;
  for (const fs::path& entry : EntriesOf(folder_)) {
    Found found{.name = entry.filename().string()};
    if (!IsOfALibrary(found.name) || ::lstat(entry.c_str(), &found.info) != 0) continue;
    if (S_ISREG(found.info.st_mode) && found.info.st_uid == ::geteuid() &&
        !before_.contains(found.info.st_ino))
      all.push_back(std::move(found));
  }
  return all;
}

bool Segments::IsOurs(const Found& found) const {
  const auto known = ours_.find(found.name);
  return known != ours_.end() && known->second == found.info.st_ino;
}

bool Segments::TorchsWait() const {
  return std::ranges::any_of(
      Appeared(), [this](const Found& found) { return found.name.starts_with(kOfTorch) && !IsOurs(found); });
}

void Segments::Note(const Processes& processes) {
  for (signalfd_siginfo info; ::read(appeared_.get(), &info, sizeof info) > 0;) {
  }
  std::vector<Found> fresh = Appeared();
  std::erase_if(made_by_job_, [&](const auto& known) {
    return std::ranges::none_of(fresh, [&](const Found& found) { return found.info.st_ino == known.first; });
  });
  std::erase_if(fresh, [this](const Found& found) { return made_by_job_.contains(found.info.st_ino); });
  if (fresh.empty()) return;
  const std::vector<pid_t> job = processes();
  std::optional<std::vector<pid_t>> others;
  for (const Found& found : fresh) {
    const auto holds = [&](pid_t pid) { return Holds(pid, found.info); };
    const std::optional<pid_t> maker = MakerIn(found.name);
    bool ours = maker && Has(job, *maker);
    if (!ours && std::ranges::any_of(job, holds)) {
      if (!others) others = ProcessesOfThisUser(job);
      ours = !(maker && Has(*others, *maker)) && std::ranges::none_of(*others, holds);
    }
    made_by_job_[found.info.st_ino] = ours;
  }
}

void Segments::Look(const Processes& processes) {
  Note(processes);
  std::vector<Found> made = Appeared();
  std::erase_if(made, [this](const Found& found) {
    const auto by_job = made_by_job_.find(found.info.st_ino);
    return by_job == made_by_job_.end() || !by_job->second || IsOurs(found);
  });
  if (made.empty()) return;
  const std::vector<pid_t> job = processes();
  for (const Found& found : made) {
    if (std::ranges::any_of(job, [&](pid_t pid) { return Maps(pid, found.info); }))
      ours_[found.name] = found.info.st_ino;
  }
}

std::vector<std::string> Segments::Remove() {
  std::vector<std::string> removed;
  for (const auto& [name, inode] : ours_) {
    const std::string path = (folder_ / name).string();
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0 || info.st_ino != inode || !IsOnlyHolder(file.get()))
      continue;
    if (::unlink(path.c_str()) == 0) removed.push_back(name);
  }
  ours_.clear();
  return removed;
}

}  // namespace dtrun::process
