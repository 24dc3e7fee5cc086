#include "core/comm/plugin_fault.h"

#include <dlfcn.h>
#include <link.h>
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

// Text without memory of its own.
class FaultText {
 public:
  FaultText& Add(const char* text, std::size_t most = kBytes) {
    const std::size_t size = std::min({std::strlen(text), most, kBytes - size_});
    std::memcpy(text_ + size_, text, size);
    size_ += size;
    return *this;
  }
  FaultText& Add(std::uintptr_t number, unsigned base) {
    char digits[24] = {};
    char* first = digits + sizeof digits - 1;
    do *--first = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    return Add(base == 16 ? "0x" : "").Add(first);
  }
  const char* text() const { return text_; }
  void WriteLine() {
    text_[size_++] = '\n';
    for (std::size_t at = 0; at < size_;) {
      const ssize_t written = ::write(STDERR_FILENO, text_ + at, size_ - at);
      if (written < 0 && errno != EINTR) return;
      at += written > 0 ? static_cast<std::size_t>(written) : 0;
    }
  }

 private:
  static constexpr std::size_t kBytes = 4096 + 128;  // a path and its numbers
  char text_[kBytes + 1] = {};
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
  if (at != 0) text.Add(", at ").Add(at, 16).Add(" of its file");
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

constexpr int kMostFrames = 48;

// Of a stack that is printed.
struct PrintedStack {
  std::uintptr_t before = 0;  // the last frame of the handler: the return from the signal
  int number = -1;            // of the next line; negative: still in the handler
};

void Print(std::uintptr_t ip, int number) {
  char program[4096] = {};
  const char* module = "";
  std::uintptr_t base = 0;
  dl_find_object found;
  if (::_dl_find_object(reinterpret_cast<void*>(ip), &found) == 0) {
    module = found.dlfo_link_map->l_name;
    base = found.dlfo_link_map->l_addr;
    if (*module == '\0' && ::readlink("/proc/self/exe", program, sizeof program - 1) > 0) module = program;
  }
  FaultText()
      .Add(number < 10 ? "[ " : "[")
      .Add(static_cast<std::uintptr_t>(number), 10)
      .Add("] ")
      .Add(*module == '\0' ? "?" : module)
      .Add("(+")
      .Add(ip - base, 16)
      .Add(")[")
      .Add(ip, 16)
      .Add("]")
      .WriteLine();
}

_Unwind_Reason_Code Look(_Unwind_Context* frame, void* to) {
  PrintedStack& walk = *static_cast<PrintedStack*>(to);
  int interrupted = 0;
  const std::uintptr_t ip = _Unwind_GetIPInfo(frame, &interrupted);
  if (walk.number < 0 && interrupted != 0) {
    walk.number = 0;
    Print(walk.before, walk.number++);
  }
  walk.before = ip;
  if (ip != 0 && walk.number > 0) Print(ip, walk.number++);
  return walk.number > kMostFrames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

// On standard error, in the form of glibc's backtrace_symbols and of Open MPI, which the host reads
// (core/stacks/crash.h).
void PrintCrashStack(int signal) {
  const char* const name = ::sigabbrev_np(signal);  // a constant
  FaultText()
      .Add("dtrun: process ")
      .Add(static_cast<std::uintptr_t>(::getpid()), 10)
      .Add(" got signal ")
      .Add(static_cast<std::uintptr_t>(signal), 10)
      .Add("; SIG")
      .Add(name == nullptr ? "?" : name)
      .Add(" in its thread ")
      .Add(static_cast<std::uintptr_t>(::gettid()), 10)
      .Add(":")
      .WriteLine();
  PrintedStack walk;
  static_cast<void>(_Unwind_Backtrace(Look, &walk));
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
