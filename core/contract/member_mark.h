// Marks which plugin members a rank's threads are in, in its pages of the flight recorder. These outlive a
// process that ends by `_exit`, so its host can report where it was.
//
// A thread takes a mark when it first enters a member and returns it when the thread ends. MemberMarks is one
// per process; InMember lies on the stack of the thread that calls. The host treats the marks as untrusted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/contract/recorder_memory.h"
#include "core/wire/limits.h"

namespace dtrun::contract {

class MemberMarks {
 public:
  // From now on marks are in the pages of `rank` of the recorder behind `fd`, which stay mapped for good. If
  // it cannot be mapped, they stay in private memory, as before the first call.
  static void Use(int fd, int rank);
  // The process ends by `exit`, which reports its caller: none of its marks counts any more.
  static void Retire();
  // The process ends by a fault of a plugin: "backend 'demo', on a thread of its own". Only the first counts.
  // Returns whether this is it. Async-signal-safe, as is its counterpart.
  static bool Fault(const char* text);
  static void FaultOver();
  // kThreadMarks of them, where Use has mapped them; else null.
  static MemberMark* Mine();
  // The member that this thread is in; null: none.
  static const char* OfThisThread();
};

// A thread's current mark.
struct ThreadMark {
  MemberMark* mark = nullptr;
  std::uint32_t round = 0;     // of MemberMarks; 0: none yet
  const void* what = nullptr;  // identifies the text in the mark
};
// Python loads libdtrun late; this takes 24 of the bytes that the loader reserves for such libraries.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadMark thread_mark;
extern std::atomic<std::uint32_t> marks_round;

// Costs nanoseconds if the thread's last member was of the same backend.
class InMember {
 public:
  // An operation of `backend`. The same address means the same text until the next Of.
  InMember(const std::string& backend, std::int64_t limit_ns)
      : InMember(&backend, backend, ", in an operation", limit_ns) {}
  // A call with its own text: "backend 'demo', in its init".
  static InMember Of(const std::string& call, std::int64_t limit_ns = 0) {
    ++marks_round;
    return {&call, call, {}, limit_ns};
  }
  ~InMember() {
    mark_->depth.store(mark_->depth.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  InMember(const InMember&) = delete;
  InMember& operator=(const InMember&) = delete;

 private:
  InMember(const void* what, const std::string& name, std::string_view rest, std::int64_t limit_ns) {
    if (thread_mark.round != marks_round.load(std::memory_order_relaxed) || thread_mark.what != what)
        [[unlikely]]
      Write(what, name, rest);
    mark_ = thread_mark.mark;
    mark_->limit.store(limit_ns, std::memory_order_relaxed);
    mark_->entered.store(mark_->entered.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    mark_->depth.store(mark_->depth.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  static void Write(const void* what, const std::string& name, std::string_view rest);

  MemberMark* mark_;
};

struct UnderWay {
  std::string members;       // "backend 'gloo', in an operation", of each thread that was in one
  bool main_thread = false;  // the process' first thread was among them
  bool fault = false;        // of a plugin, which ended the process: then `members` has it alone
  void Fields(auto& io) {
    io("members", members, wire::kMostName);
    io("main_thread", main_thread);
    io("fault", fault);
  }
};
// After the end of a process of `count` ranks, from `rank` on: the fault or the members of the first rank
// that has any. Empty if none was in one, or if the process ended by `exit`.
UnderWay MembersUnderWay(const RecorderMemory& recorder_memory, int rank, int count = 1);

// Of a living rank, as its HangWatch (core/comm/plugin_call.h) last saw it: it looks once a second.
struct Overdue {
  std::string members;  // with limits that have passed: "backend 'gloo', in an operation". Empty: none
  bool soon = false;    // the limit of another one passes within the time, unless it returns
};
Overdue MembersOverdue(const RecorderMemory& recorder_memory, int rank, std::chrono::milliseconds within);

}  // namespace dtrun::contract
