#include "core/contract/member_mark.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace dtrun::contract {
namespace {

constexpr std::int32_t kDeepest = 64;  // a larger value is damage

// For threads that get no mark; never read.
MemberMark unread;
std::atomic<MemberMark*> marks{nullptr};  // kMarks of them
std::atomic<pid_t> owner{0};              // the process that mapped them, not a forked child

// Returns the mark when its thread ends, except in a forked child.
struct Holder {
  MemberMark* mark = nullptr;
  ~Holder() { Leave(); }
  void Leave() {
    if (mark == nullptr || owner != getpid()) return;
    mark->depth.store(0, std::memory_order_relaxed);
    mark->taken.store(0, std::memory_order_release);
    mark = nullptr;
    thread_mark = {};
  }
};
thread_local Holder holder;

MemberMark* Take() {
  MemberMark* const first = marks.load(std::memory_order_acquire);
  const std::uint32_t who = gettid() == getpid() ? kByMainThread : kByThread;
  for (int i = 0; i < kMarks && first != nullptr; ++i) {
    std::uint32_t free = 0;
    if (first[i].taken.load(std::memory_order_relaxed) == 0 &&
        first[i].taken.compare_exchange_strong(free, who))
      return &first[i];
  }
  return &unread;
}

MemberMark* Map(int fd, int rank) {
  struct stat status {};
  if (rank < 0 || fstat(fd, &status) != 0) return nullptr;
  const std::size_t begin = kRecorderHeadBytes + static_cast<std::size_t>(rank) * kRankPagesBytes;
  if (static_cast<std::size_t>(status.st_size) < begin + kRankPagesBytes) return nullptr;
  void* const pages =
      mmap(nullptr, kRankPagesBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(begin));
  if (pages == MAP_FAILED) return nullptr;
  return reinterpret_cast<MemberMark*>(static_cast<std::byte*>(pages) + kRings * sizeof(Ring));
}

// Every text begins with a kind of plugin and its name: "backend 'demo'".
bool MayBeWritten(std::string_view text) {
  const std::size_t quote = text.find(" '");
  return quote != std::string_view::npos && std::ranges::all_of(text.substr(0, quote), [](char c) {
           return c == ' ' || ('a' <= c && c <= 'z');
         });
}

UnderWay ReadMarks(const MemberMark* first) {
  if (first->retired.load(std::memory_order_relaxed) != 0) return {};
  UnderWay under_way;
  std::string& all = under_way.members;
  for (int i = 0; i < kMarks; ++i) {
    const std::int32_t depth = first[i].depth.load(std::memory_order_relaxed);
    const std::uint32_t taken = first[i].taken.load(std::memory_order_acquire);
    if (taken == 0 || depth < 1 || depth > kDeepest) continue;
    const std::string text(first[i].text, strnlen(first[i].text, kMarkTextBytes));
    if (!MayBeWritten(text)) continue;
    under_way.main_thread = under_way.main_thread || taken == kByMainThread;
    if (all.find(text) != std::string::npos) continue;
    if (all.size() + text.size() > 3 * kMarkTextBytes) break;
    all += (all.empty() ? "" : "; ") + text;
  }
  return under_way;
}

}  // namespace

constinit thread_local ThreadMark thread_mark;
constinit std::atomic<std::uint32_t> marks_round{1};

void MemberMarks::Use(int fd, int rank) {
  owner = getpid();
  marks.store(Map(fd, rank), std::memory_order_release);
  ++marks_round;
}

void MemberMarks::Retire() {
  MemberMark* const first = marks.load(std::memory_order_acquire);
  if (first != nullptr && owner == getpid()) first->retired = 1;
}

// Writes to the thread's own mark, unless the thread is inside a member: that mark goes on counting it.
void InMember::Write(const void* what, const std::string& name, std::string_view rest) {
  const std::uint32_t round = marks_round.load(std::memory_order_relaxed);
  const bool inside = thread_mark.mark != nullptr && thread_mark.mark != &unread &&
                      thread_mark.mark->depth.load(std::memory_order_relaxed) > 0;
  if (thread_mark.round != round && !inside) {
    holder.Leave();
    thread_mark.mark = Take();
    if (thread_mark.mark != &unread) holder.mark = thread_mark.mark;
  }
  thread_mark.round = round;
  thread_mark.what = what;
  if (thread_mark.mark == &unread) return;
  char* end = thread_mark.mark->text;
  const char* const last = end + kMarkTextBytes - 1;
  const auto append = [&](std::string_view part) {
    end = std::copy_n(part.data(), std::min(part.size(), static_cast<std::size_t>(last - end)), end);
  };
  if (!rest.empty()) append("backend '");
  append(name);
  if (!rest.empty()) append("'");
  append(rest);
  *end = '\0';
}

UnderWay MembersUnderWay(const RecorderMemory& recorder_memory, int rank, int count) {
  UnderWay under_way;
  for (int one = rank; one < rank + count && under_way.members.empty(); ++one)
    under_way = ReadMarks(recorder_memory.MarksOf(one));
  return under_way;
}

}  // namespace dtrun::contract
