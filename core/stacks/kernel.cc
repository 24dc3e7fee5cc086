#include "core/stacks/kernel.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "core/base/read_file.h"
#include "core/base/text.h"
#include "core/stacks/memory.h"

namespace dtrun::stacks {
namespace {

constexpr std::size_t kMostTasks = 256;
// Threads of torch's store server: pt_tcpstore_uv, or before libuv pt_tcpstore.
constexpr std::string_view kStoreServer = "pt_tcpstore";
// Reads of a process's bytes that a serving thread may disturb.
constexpr int kMostReads = 8;

struct Call {
  long number;
  const char* name;
  bool takes_descriptor;
  bool elsewhere;  // a call that does not wait for other ranks
};

constexpr Call kCalls[] = {
    {SYS_read, "read", true, false},
    {SYS_readv, "readv", true, false},
    {SYS_pread64, "pread", true, true},
    {SYS_write, "write", true, false},
    {SYS_writev, "writev", true, false},
    {SYS_recvfrom, "recv", true, false},
    {SYS_recvmsg, "recvmsg", true, false},
    {SYS_sendto, "send", true, false},
    {SYS_sendmsg, "sendmsg", true, false},
    {SYS_connect, "connect", true, false},
    {SYS_accept, "accept", true, false},
    {SYS_accept4, "accept", true, false},
    {SYS_fsync, "fsync", true, true},
    {SYS_fdatasync, "fdatasync", true, true},
    {SYS_flock, "flock", true, true},
    {SYS_fcntl, "fcntl", true, true},
    {SYS_ioctl, "ioctl", true, false},
    {SYS_openat, "open", false, true},
#ifdef SYS_open
    {SYS_open, "open", false, true},
#endif
#ifdef SYS_poll
    {SYS_poll, "poll", false, false},
#endif
    {SYS_ppoll, "poll", false, false},
#ifdef SYS_select
    {SYS_select, "select", false, false},
#endif
    {SYS_pselect6, "select", false, false},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, "epoll_wait", false, false},
#endif
    {SYS_epoll_pwait, "epoll_wait", false, false},
    {SYS_futex, "futex", false, false},
    {SYS_restart_syscall, "a sleep or wait", false, false},  // that a signal or a debugger has interrupted
    {SYS_kill, "kill", false, false},
    {SYS_tgkill, "tgkill", false, false},
    {SYS_nanosleep, "nanosleep", false, true},
    {SYS_clock_nanosleep, "clock_nanosleep", false, true},
#ifdef SYS_pause
    {SYS_pause, "pause", false, true},
#endif
    {SYS_rt_sigsuspend, "sigsuspend", false, true},
    {SYS_rt_sigtimedwait, "sigtimedwait", false, true},
    {SYS_wait4, "wait for a child", false, true},
    {SYS_waitid, "wait for a child", false, true},
};

std::string WithoutControls(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

std::string LinkOf(pid_t pid, int descriptor) {
  std::array<char, 256> text{};
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, descriptor);
  if (::readlink(path.c_str(), text.data(), text.size() - 1) <= 0) return {};
  return WithoutControls(text.data());
}

// Of a system call, as in /proc/PID/syscall: six arguments, and where the thread's stack and code are.
using Arguments = std::array<std::uint64_t, 8>;
constexpr std::size_t kStack = 6, kCode = 7;

std::string Described(const std::string& link) {
  if (link.starts_with("pipe:")) return "a pipe";
  if (link.starts_with("socket:")) return "a socket";
  return link;
}

struct Sleep {
  std::chrono::nanoseconds time{};  // in all, or yet to come
  bool until = false;               // a moment, so that `time` is what is yet to come
};
// By the arguments of nanosleep(2) or clock_nanosleep(2); empty: it is no sleep.
std::optional<Sleep> SleepOf(pid_t pid, long number, const Arguments& arguments) {
  if (number != SYS_nanosleep && number != SYS_clock_nanosleep) return std::nullopt;
  const bool by_clock = number == SYS_clock_nanosleep;
  const auto time = ProcessMemory(pid).Read<timespec>(arguments[by_clock ? 2 : 0]);
  timespec now{};
  const bool until = by_clock && (arguments[1] & TIMER_ABSTIME) != 0;
  if (until && ::clock_gettime(static_cast<clockid_t>(arguments[0]), &now) != 0) return std::nullopt;
  if (!time) return std::nullopt;
  return Sleep{
      std::chrono::seconds(time->tv_sec - now.tv_sec) + std::chrono::nanoseconds(time->tv_nsec - now.tv_nsec),
      until};
}

void AddWait(pid_t pid, const std::string& syscall, Task* task) {
  std::istringstream fields(syscall);
  long number = -1;
  Arguments arguments{};
  if (!(fields >> number)) return;  // "running"
  for (std::uint64_t& argument : arguments) {
    std::string text;
    if (!(fields >> text)) return;
    argument = std::strtoull(text.c_str(), nullptr, 16);
  }
  // A sleep that a signal or a debugger has interrupted goes on with its arguments. Of all calls that go on
  // so, it alone has a small number first, the clock, where others have an address.
  constexpr std::uint64_t kMostClocks = 16;
  if (number == SYS_restart_syscall && arguments[0] < kMostClocks) number = SYS_clock_nanosleep;
  const std::optional<Sleep> sleep = SleepOf(pid, number, arguments);
  const std::int64_t length = sleep && !sleep->until ? sleep->time.count() : 0;
  task->spot = std::hash<std::string>()(
      fmt::format("{} {} {} {} {}", number, arguments[0], arguments[kStack], arguments[kCode], length));
  const auto* const call = std::ranges::find(kCalls, number, &Call::number);
  if (call == std::end(kCalls)) {
    if (number >= 0) task->waits = fmt::format("system call {}", number);
    return;
  }
  task->waits = call->name;
  task->elsewhere = call->elsewhere;
  task->argument = arguments[0];
  task->naps = sleep && sleep->time < std::chrono::seconds(1);
  if (!call->takes_descriptor) return;
  const auto descriptor = static_cast<int>(task->argument);
  const std::string link = LinkOf(pid, descriptor);
  task->waits +=
      fmt::format(" of descriptor {}{}", descriptor, link.empty() ? "" : " (" + Described(link) + ")");
  if (!link.empty() && !link.starts_with("socket:")) task->elsewhere = true;
}

// The fields from the state on, after the name, which may contain any character.
std::string AfterName(const std::string& stat) {
  const auto end = stat.rfind(')');
  return end == std::string::npos || end + 2 > stat.size() ? "" : stat.substr(end + 2);
}

std::string NameIn(const std::string& stat) {
  const auto begin = stat.find('('), end = stat.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return WithoutControls(stat.substr(begin + 1, end - begin - 1));
}

// Read and written by a process or a thread. `folder`: its own in /proc.
std::int64_t BytesIn(const std::filesystem::path& folder) {
  std::istringstream io(ReadKernelFile((folder / "io").string()));
  std::string name;
  std::int64_t bytes = 0;
  for (std::int64_t value = 0; io >> name >> value;) {
    if (name == "rchar:" || name == "wchar:") bytes += value;
  }
  return bytes;
}

// Without the bytes of torch's store server: they are requests of other ranks and of waiting threads, which
// repeat while nothing progresses.
std::int64_t OwnBytes(pid_t pid) {
  const std::filesystem::path process = fmt::format("/proc/{}", pid);
  std::vector<std::filesystem::path> servers;
  for (const auto& thread : EntriesOf(process / "task")) {
    if (ReadKernelFile((thread / "comm").string()).starts_with(kStoreServer)) servers.push_back(thread);
  }
  const auto served = [&] {
    std::int64_t bytes = 0;
    for (const auto& thread : servers) bytes += BytesIn(thread);
    return bytes;
  };
  std::int64_t before = served();
  for (int reads = 1;; ++reads) {
    const std::int64_t all = BytesIn(process);
    const std::int64_t after = served();
    if (after == before || reads == kMostReads) return std::max<std::int64_t>(all - after, 0);
    before = after;
  }
}

std::optional<Task> TaskOf(pid_t pid, pid_t id) {
  const std::string folder = fmt::format("/proc/{}/task/{}/", pid, id);
  const std::string stat = ReadKernelFile(folder + "stat");
  const std::string rest = AfterName(stat);
  if (id <= 0 || rest.empty()) return std::nullopt;
  Task task{.id = id, .name = NameIn(stat), .state = rest.front(), .waits = {}};
  if (task.state != 'R') AddWait(pid, ReadKernelFile(folder + "syscall"), &task);
  return task;
}

}  // namespace

std::vector<Task> TasksOf(pid_t pid) {
  std::vector<Task> tasks;
  for (const auto& entry : EntriesOf(fmt::format("/proc/{}/task", pid))) {
    if (tasks.size() == kMostTasks) break;
    const auto id = static_cast<pid_t>(std::strtol(entry.filename().c_str(), nullptr, 10));
    if (auto task = TaskOf(pid, id)) tasks.push_back(*std::move(task));
  }
  std::stable_partition(tasks.begin(), tasks.end(), [&](const Task& task) { return task.id == pid; });
  return tasks;
}

std::vector<Task> MainTaskOf(pid_t pid) {
  std::vector<Task> tasks;
  if (auto task = TaskOf(pid, pid)) tasks.push_back(*std::move(task));
  return tasks;
}

Used UsedBy(pid_t pid) {
  Used used;
  std::istringstream fields(AfterName(ReadKernelFile(fmt::format("/proc/{}/stat", pid))));
  std::string skipped;
  const auto skip = [&](int count) {
    for (int i = 0; i < count; ++i) fields >> skipped;
  };
  std::int64_t user = 0, system = 0, pages = 0;
  skip(9);  // proc(5): the state, of which this is the first, is field 3
  fields >> used.faults;
  skip(1);
  fields >> user >> system;
  skip(8);
  fields >> pages;
  used.resident = pages * std::max(::sysconf(_SC_PAGESIZE), 1L);
  const long ticks = std::max(::sysconf(_SC_CLK_TCK), 1L);
  used.processor_ms = (user + system) * 1000 / ticks;
  used.kernel_ms = system * 1000 / ticks;
  used.bytes = OwnBytes(pid);
  return used;
}

std::int64_t NetworkBytes(std::string_view table) {
  std::int64_t bytes = 0;
  for (const std::string_view line : LinesOf(table)) {
    const auto colon = line.find(':');  // the two lines of the heading have none
    if (colon == line.npos || Trim(line.substr(0, colon)) == "lo") continue;
    std::istringstream counts{std::string(line.substr(colon + 1))};
    std::int64_t received = 0, sent = 0;
    std::string skipped;
    counts >> received;
    for (int i = 0; i < 7; ++i) counts >> skipped;
    if (counts >> sent) bytes += received + sent;
  }
  return bytes;
}

std::int64_t NetworkBytes() { return NetworkBytes(ReadKernelFile("/proc/net/dev")); }

Scheduled ScheduledOf(pid_t pid) {
  Scheduled scheduled;
  const std::string folder = fmt::format("/proc/{0}/task/{0}/", pid);
  std::istringstream times(ReadKernelFile(folder + "schedstat"));
  std::int64_t ran = 0, delayed = 0;
  if (times >> ran >> delayed) {
    scheduled.ran = std::chrono::nanoseconds(ran);
    scheduled.delayed = std::chrono::nanoseconds(delayed);
  }
  constexpr std::string_view kSleeps = "voluntary_ctxt_switches:";
  const std::string status = ReadKernelFile(folder + "status");
  for (const std::string_view line : LinesOf(status)) {
    if (line.starts_with(kSleeps))
      scheduled.sleeps = std::atoll(std::string(line.substr(kSleeps.size())).c_str());
  }
  return scheduled;
}

// "4: FLOCK  ADVISORY  WRITE 3517 fd:00:2531448 0 EOF", followed by "4: -> FLOCK  ADVISORY  WRITE 3548 ..."
// for each waiting process.
pid_t HolderOfLock(std::string_view locks, pid_t waits) {
  pid_t holder = 0;
  for (const std::string_view line : LinesOf(locks)) {
    std::istringstream fields{std::string(line)};
    std::string number, type, mode, access;
    fields >> number >> type;
    const bool waiting = type == "->";
    if (waiting) fields >> type;
    pid_t pid = 0;
    if (!(fields >> mode >> access >> pid)) continue;
    if (!waiting) holder = pid;
    if (waiting && pid == waits)
      return std::max(holder, 0);  // -1: the lock belongs to an open file description
  }
  return 0;
}

pid_t HolderOfLock(pid_t waits) { return HolderOfLock(ReadKernelFile("/proc/locks"), waits); }

}  // namespace dtrun::stacks
