#include "core/contract/member_mark.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/base/fault_stack.h"

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
  const std::uint8_t who = gettid() == getpid() ? kByMainThread : kByThread;
  for (int i = 0; i < kThreadMarks && first != nullptr; ++i) {
    std::uint8_t free = 0;
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

std::string TextOf(const MemberMark& mark) {
  std::string text(mark.text, strnlen(mark.text, kMarkTextBytes));
  return MayBeWritten(text) ? text : "";
}

void AddTo(std::string& all, const std::string& text) {
  if (all.find(text) != std::string::npos || all.size() + text.size() > 3 * kMarkTextBytes) return;
  all += (all.empty() ? "" : "; ") + text;
}

UnderWay ReadMarks(const MemberMark* first) {
  const bool faulty = first[kThreadMarks].taken.load(std::memory_order_acquire) == kByThread &&
                      first[kThreadMarks].depth == 1;
  if (std::string text = faulty ? TextOf(first[kThreadMarks]) : ""; !text.empty())
    return {std::move(text), false, true};
  if (first->retired.load(std::memory_order_relaxed) != 0) return {};
  UnderWay under_way;
  for (int i = 0; i < kThreadMarks; ++i) {
    const std::int32_t depth = first[i].depth.load(std::memory_order_relaxed);
    const std::uint8_t taken = first[i].taken.load(std::memory_order_acquire);
    if (taken == 0 || depth < 1 || depth > kDeepest) continue;
    const std::string text = TextOf(first[i]);
    under_way.main_thread = under_way.main_thread || (!text.empty() && taken == kByMainThread);
    AddTo(under_way.members, text);
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

bool MemberMarks::Fault(const char* text) {
  MemberMark* const first = marks.load(std::memory_order_acquire);
  if (first == nullptr || owner != getpid()) return false;
  MemberMark& mark = first[kThreadMarks];
  std::int32_t none = 0;
  if (!mark.depth.compare_exchange_strong(none, 1)) return false;
  std::size_t size = 0;
  for (; size + 1 < kMarkTextBytes && text[size] != '\0'; ++size) mark.text[size] = text[size];
  mark.text[size] = '\0';
  mark.taken.store(kByThread, std::memory_order_release);
  return true;
}

void MemberMarks::FaultOver() {
  MemberMark& mark = marks.load(std::memory_order_acquire)[kThreadMarks];
  mark.taken.store(0, std::memory_order_release);
  mark.depth = 0;
}

MemberMark* MemberMarks::Mine() {
  return owner == getpid() ? marks.load(std::memory_order_acquire) : nullptr;
}

const char* MemberMarks::OfThisThread() {
  const MemberMark* const mark = thread_mark.mark;
  return mark != nullptr && mark != &unread && mark->depth.load(std::memory_order_relaxed) > 0 ? mark->text
                                                                                               : nullptr;
}

// Writes to the thread's own mark, unless the thread is inside a member: that mark goes on counting it.
void InMember::Write(const void* what, const std::string& name, std::string_view rest) {
  HaveFaultStack();
  const std::uint32_t round = marks_round.load(std::memory_order_relaxed);
  if (thread_mark.round != round && MemberMarks::OfThisThread() == nullptr) {
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

Overdue MembersOverdue(const RecorderMemory& recorder_memory, int rank, std::chrono::milliseconds within) {
  Overdue overdue;
  const MemberMark* const first = recorder_memory.MarksOf(rank);
  for (const MemberMark* mark = first; mark != first + kThreadMarks; ++mark) {
    const std::int32_t depth = mark->depth.load(std::memory_order_relaxed);
    const bool watched =
        mark->watched.load(std::memory_order_acquire) == mark->entered.load(std::memory_order_relaxed);
    const std::chrono::milliseconds left(mark->left_ms.load(std::memory_order_relaxed));
    const bool inside = mark->taken.load(std::memory_order_acquire) != 0 && depth >= 1 && depth <= kDeepest;
    if (!inside || !watched || mark->limit.load(std::memory_order_relaxed) <= 0) continue;
    if (left.count() == 0) AddTo(overdue.members, TextOf(*mark));
    overdue.soon = overdue.soon || (left.count() > 0 && left <= within);
  }
  return overdue;
}

}  // namespace dtrun::contract
