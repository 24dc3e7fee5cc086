#include "core/comm/plugin_fault.h"

#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/comm/crash_stack.h"
#include "core/contract/member_mark.h"
#include "core/plugin/plugin_code.h"

namespace dtrun::comm {
namespace {

using plugin::Code;

constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
std::array<struct sigaction, NSIG> before;  // what WatchForFaults found, by signal

// What lies on the stack between the fault and the thread's start, or another signal.
struct FaultyStack {
  int signals = 0;                        // seen so far; 1: the fault's own
  const Code* plugin = nullptr;           // the innermost
  std::uintptr_t at = 0;                  // where in its file
  const Code* library = nullptr;          // of a plugin
  bool elsewhere = false;                 // some frame is the program's or dtrun's
  bool in_system = false, whole = false;  // the last frame, or one of the last two, is the C library's
};

_Unwind_Reason_Code LookAtFrame(_Unwind_Context* frame, void* to) {
  FaultyStack& stack = *static_cast<FaultyStack*>(to);
  int interrupted = 0;
  const std::uintptr_t ip = _Unwind_GetIPInfo(frame, &interrupted);
  if (interrupted != 0 && ++stack.signals > 1) return _URC_END_OF_STACK;
  if (stack.signals == 0 || ip == 0) return _URC_NO_REASON;  // of the handler, or behind the thread's start
  const std::uintptr_t at = interrupted != 0 ? ip : ip - 1;
  const Code* const code = plugin::CodeAt(at);
  const bool in_system = code != nullptr && code->of == Code::Of::kSystem;
  stack.whole = in_system || stack.in_system;
  stack.in_system = in_system;
  if (code == nullptr) stack.elsewhere = true;
  if (code != nullptr && code->of == Code::Of::kItsLibrary) stack.library = code;
  if (code == nullptr || code->of != Code::Of::kPlugin) return _URC_NO_REASON;
  stack.plugin = code;
  stack.at = at - code->begin;
  return _URC_END_OF_STACK;
}

// Text without memory of its own, for a signal handler.
class FaultText {
 public:
  FaultText& Add(const char* text, std::size_t most = 200) {
    const std::size_t size = std::min({std::strlen(text), most, sizeof text_ - 1 - size_});
    std::memcpy(text_ + size_, text, size);
    size_ += size;
    text_[size_] = '\0';
    return *this;
  }
  void AddHex(std::uintptr_t number) {
    char digits[2 * sizeof number + 1] = {};
    char* first = digits + sizeof digits - 1;
    do *--first = "0123456789abcdef"[number % 16];
    while ((number /= 16) != 0);
    Add("0x").Add(first);
  }
  const char* text() const { return text_; }

 private:
  char text_[contract::kMarkTextBytes] = {};
  std::size_t size_ = 0;
};

// "backend 'demo', in an operation, at 0x1139 of its file". `call`: that the thread is in; null: none.
bool MarkFault(const Code& code, const char* call, std::uintptr_t at) {
  constexpr std::size_t kCallBytes = contract::kMarkTextBytes - sizeof ", at 0x0123456789abcdef of its file";
  FaultText text;
  if (call != nullptr && plugin::IsOf(code, call)) {
    text.Add(call, kCallBytes);
  } else {
    const char* const thread = ::gettid() == ::getpid() ? ", outside its calls" : ", on a thread of its own";
    text.Add(code.who).Add(call != nullptr ? ", in a call" : thread);
  }
  if (at != 0) text.Add(", at ").AddHex(at);
  if (at != 0) text.Add(" of its file");
  return contract::MemberMarks::Fault(text.text());
}

// After a call of an address where no code is: where the caller would go on. Zero: another fault, or unknown.
std::uintptr_t CallerOfNoCode(const siginfo_t& fault, const void* context) {
  if (fault.si_signo != SIGSEGV && fault.si_signo != SIGBUS) return 0;
  const mcontext_t& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  if (static_cast<std::uintptr_t>(registers.gregs[REG_RIP]) !=
      reinterpret_cast<std::uintptr_t>(fault.si_addr))
    return 0;
  std::uintptr_t back = 0;
  iovec to{&back, sizeof back}, from{reinterpret_cast<void*>(registers.gregs[REG_RSP]), sizeof back};
  return ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == sizeof back
             ? back
             : 0;  // the stack may be unreadable
#elif defined(__aarch64__)
  return registers.pc == reinterpret_cast<std::uintptr_t>(fault.si_addr) ? registers.regs[30] : 0;
#else
  static_cast<void>(registers);
  return 0;
#endif
}

// The instruction that the signal has interrupted; zero: unknown.
std::uintptr_t Interrupted(const void* context) {
  const mcontext_t& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(registers.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return registers.pc;
#else
  static_cast<void>(registers);
  return 0;
#endif
}

// Returns whether it has marked one.
bool FindFault(const siginfo_t& fault, const void* context) {
  const char* const call = contract::MemberMarks::OfThisThread();
  // Without a walk, which reads the plugin's file: it may have been cut.
  const std::uintptr_t at = Interrupted(context);
  if (const Code* const own = plugin::CodeAt(at); own != nullptr && own->of == Code::Of::kPlugin)
    return MarkFault(*own, call, at - own->begin);
  if (const std::uintptr_t back = CallerOfNoCode(fault, context);
      back != 0) {  // nothing can be walked from there
    const Code* const caller = plugin::CodeAt(back - 1);
    if (caller != nullptr && caller->of == Code::Of::kPlugin)
      return MarkFault(*caller, call, back - 1 - caller->begin);
  }
  // In a constructor of the plugin's file or of a library of it.
  if (call != nullptr && plugin::IsLoading(call)) return contract::MemberMarks::Fault(call);
  const Code* const called = call == nullptr ? nullptr : plugin::CodeOf(call);
  // What remains if the stack cannot be walked, which then ends the process.
  const bool marked = called != nullptr && MarkFault(*called, call, 0);
  FaultyStack stack;
  static_cast<void>(_Unwind_Backtrace(LookAtFrame, &stack));
  const bool broken = stack.signals <= 1 && !stack.whole;
  if (marked && stack.plugin == nullptr && broken) return true;
  if (marked) contract::MemberMarks::FaultOver();
  if (stack.plugin != nullptr) return MarkFault(*stack.plugin, call, stack.at);
  const bool its_thread = stack.library != nullptr && !stack.elsewhere && stack.signals == 1 && stack.whole;
  return its_thread && MarkFault(*stack.library, nullptr, 0);
}

[[gnu::tls_model("initial-exec")]] constinit thread_local bool in_fault = false;

void OnFault(int signal, siginfo_t* info, void* context) {
  const int number = errno;
  const bool again = std::exchange(in_fault, true);  // a handler from before has called this one
  const bool sent = info->si_code <= 0, crashed = !sent || info->si_pid == ::getpid();
  const bool marked = !again && crashed && FindFault(*info, context);
  const struct sigaction& was = before[static_cast<std::size_t>(signal)];
  const bool ignores = was.sa_handler == SIG_IGN && sent;
  if (!again && was.sa_handler != SIG_DFL && (ignores || was.sa_handler != SIG_IGN)) {
    if (!ignores)
      (was.sa_flags & SA_SIGINFO) != 0 ? was.sa_sigaction(signal, info, context) : was.sa_handler(signal);
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (marked && now.sa_sigaction == &OnFault) contract::MemberMarks::FaultOver();  // the process goes on
    in_fault = false;
    errno = number;
    return;
  }
  if (!again && crashed) PrintCrashStack(signal);
  ::signal(signal, SIG_DFL);
  if (sent) ::raise(signal);  // pending until the return; a real fault happens again by itself
}

}  // namespace

void WatchForFaults() {
  for (const int signal : kFaults) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) != 0 || now.sa_sigaction == &OnFault) continue;
    before[static_cast<std::size_t>(signal)] = now;
    struct sigaction ours {};
    ours.sa_sigaction = &OnFault;
    ours.sa_mask = now.sa_mask;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (now.sa_flags & SA_NODEFER);
    ::sigaction(signal, &ours, nullptr);
  }
}

}  // namespace dtrun::comm
