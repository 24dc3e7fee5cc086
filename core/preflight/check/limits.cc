#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/number.h"
#include "core/base/read_file.h"
#include "core/binding/group_limits.h"
#include "core/preflight/check/checks.h"

namespace dtrun::preflight {
namespace {

constexpr rlim_t kFilesPerRank = 1024;
constexpr rlim_t kThreadsPerRank = 256;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// Minimum for NCCL, gloo's and dtrun's shared memory and a DataLoader worker together.
constexpr std::uint64_t kShmPerRank = 256 * kMiB;

std::string LimitText(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : fmt::format("{}", limit);
}

bool HasRdma() {
  std::error_code none;
  return std::filesystem::exists("/sys/class/infiniband", none) &&
         !std::filesystem::is_empty("/sys/class/infiniband", none);
}

rlimit Limit(int what) {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(what, &limit);  // cannot fail for existing limits
  return limit;
}

void CheckMemlock(Checks* to) {
  const rlimit limit = Limit(RLIMIT_MEMLOCK);
  const std::string text =
      limit.rlim_cur == RLIM_INFINITY ? "unlimited" : FormatBytes(static_cast<std::uint64_t>(limit.rlim_cur));
  if (HasRdma() && limit.rlim_cur != RLIM_INFINITY) {
    to->push_back({"limits", Level::kProblem,
                   fmt::format("memory that may be locked: {}; RDMA needs more", text),
                   "`ulimit -l unlimited` where dtrun or sshd starts, LimitMEMLOCK=infinity for a service, "
                   "--ulimit memlock=-1 for a container"});
  } else {
    to->push_back({"limits", Level::kOk, "memory that may be locked: " + text});
  }
}

void CheckCount(const char* what, int resource, rlim_t wanted, const char* fix, Checks* to) {
  const rlimit limit = Limit(resource);
  // dtrun raises its own soft open-file limit; ranks inherit up to the hard limit.
  const rlim_t allowed = resource == RLIMIT_NOFILE ? limit.rlim_max : limit.rlim_cur;
  const bool enough = allowed == RLIM_INFINITY || allowed >= wanted;
  to->push_back({"limits", enough ? Level::kOk : Level::kWarning,
                 fmt::format("{}: {}", what, LimitText(allowed)), enough ? "" : fix});
}

void CheckShm(const Request& request, Checks* to) {
  struct statvfs room {};
  if (::statvfs("/dev/shm", &room) != 0) {
    to->push_back({"/dev/shm", Level::kProblem, Error::System("/dev/shm cannot be used", errno).text,
                   "mount a tmpfs there: the ranks of a host share memory through it"});
    return;
  }
  const std::uint64_t size = std::uint64_t{room.f_blocks} * room.f_frsize;
  const std::uint64_t free = std::uint64_t{room.f_bavail} * room.f_frsize;
  const std::uint64_t wanted = kShmPerRank * static_cast<std::uint64_t>(request.local_ranks);
  const std::string what =
      fmt::format("{} free of {}", FormatBytes(free / kMiB * kMiB), FormatBytes(size / kMiB * kMiB));
  if (::access("/dev/shm", W_OK) != 0) {
    to->push_back({"/dev/shm", Level::kProblem, "it cannot be written", "chmod 1777 /dev/shm"});
  } else if (free < 64 * kMiB) {
    to->push_back({"/dev/shm", Level::kProblem, what,
                   "remove old files there, or give the container more (--shm-size=8g)"});
  } else if (free < wanted) {
    to->push_back({"/dev/shm", Level::kWarning,
                   fmt::format("{}; {} ranks may want {}", what, request.local_ranks, FormatBytes(wanted)),
                   "give the container more (--shm-size=8g, an emptyDir of medium Memory)"});
  } else {
    to->push_back({"/dev/shm", Level::kOk, what});
  }
}

// Without room in /dev/shm, libraries use System V segments, a few per rank.
void CheckSystemV(const Request& request, Checks* to) {
  constexpr std::uint64_t kSegmentsPerRank = 16;
  const auto most = NumberOf<std::uint64_t>(FirstLineOf("/proc/sys/kernel/shmmni"));
  const std::uint64_t wanted = kSegmentsPerRank * static_cast<std::uint64_t>(request.local_ranks);
  if (!most || *most >= wanted) return;
  to->push_back({"limits", Level::kWarning,
                 fmt::format("System V segments of shared memory: {}; {} ranks may want {}", *most,
                             request.local_ranks, wanted),
                 fmt::format("sysctl -w kernel.shmmni={}", std::max<std::uint64_t>(wanted, 4096))});
}

void CheckGroup(const Request& request, Checks* to) {
  const binding::GroupLimits limits = binding::ReadGroupLimits();
  if (limits.processors)
    to->push_back({"limits", Level::kOk,
                   fmt::format("CPU quota of this control group: {:.4g} processors; dtrun counts {}",
                               *limits.processors, limits.whole_processors())});
  if (!limits.cpuset.empty())
    to->push_back(
        {"limits", Level::kOk, fmt::format("cpuset of this control group: processors {}", limits.cpuset)});
  if (limits.memory)
    to->push_back(
        {"limits", Level::kOk,
         fmt::format("memory of this control group: {}", FormatBytes(*limits.memory / kMiB * kMiB))});
  if (!limits.tasks) return;
  const bool enough = *limits.tasks >= kThreadsPerRank * static_cast<std::uint64_t>(request.local_ranks);
  to->push_back({"limits", enough ? Level::kOk : Level::kWarning,
                 fmt::format("threads of this control group: {}", *limits.tasks),
                 enough ? "" : "raise the pids limit of the container (--pids-limit) or service (TasksMax)"});
}

}  // namespace

void CheckLimits(const Request& request, Checks* to) {
  const auto ranks = static_cast<rlim_t>(request.local_ranks);
  CheckMemlock(to);
  // A backend may connect every rank with every other one, once per communicator.
  const rlim_t peers = ranks * static_cast<rlim_t>(request.host_count);
  CheckCount("open files of a process", RLIMIT_NOFILE, std::max(4 * kFilesPerRank, 16 * peers),
             "raise `ulimit -Hn` where dtrun or sshd starts, or LimitNOFILE of its service", to);
  CheckCount("processes of this user", RLIMIT_NPROC, kThreadsPerRank * ranks,
             "raise `ulimit -u` where dtrun or sshd starts", to);
  CheckGroup(request, to);
  CheckShm(request, to);
  CheckSystemV(request, to);
}

}  // namespace dtrun::preflight
