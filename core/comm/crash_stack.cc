#include "core/comm/crash_stack.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>
#include <unwind.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace dtrun::comm {
namespace {

constexpr int kMostFrames = 48;

// A line without memory of its own.
class Line {
 public:
  Line& Add(const char* text) {
    while (*text != '\0' && size_ + 1 < sizeof text_) text_[size_++] = *text++;
    return *this;
  }
  Line& Add(std::uintptr_t number, unsigned base) {
    char digits[24] = {};
    char* first = digits + sizeof digits - 1;
    do *--first = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    return Add(base == 16 ? "0x" : "").Add(first);
  }
  void Write() {
    text_[size_++] = '\n';
    for (std::size_t at = 0; at < size_;) {
      const ssize_t written = ::write(STDERR_FILENO, text_ + at, size_ - at);
      if (written < 0 && errno != EINTR) return;
      at += written > 0 ? static_cast<std::size_t>(written) : 0;
    }
  }

 private:
  char text_[4096 + 128];  // a path and its numbers
  std::size_t size_ = 0;
};

const char* NameOf(int signal) {
  const char* const name = ::sigabbrev_np(signal);  // a constant
  return name == nullptr ? "?" : name;
}

struct Walk {
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
  Line line;
  line.Add(number < 10 ? "[ " : "[").Add(static_cast<std::uintptr_t>(number), 10).Add("] ");
  line.Add(*module == '\0' ? "?" : module)
      .Add("(+")
      .Add(ip - base, 16)
      .Add(")[")
      .Add(ip, 16)
      .Add("]")
      .Write();
}

_Unwind_Reason_Code Look(_Unwind_Context* frame, void* to) {
  Walk& walk = *static_cast<Walk*>(to);
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

}  // namespace

void PrintCrashStack(int signal) {
  Line()
      .Add("dtrun: process ")
      .Add(static_cast<std::uintptr_t>(::getpid()), 10)
      .Add(" got signal ")
      .Add(static_cast<std::uintptr_t>(signal), 10)
      .Add("; SIG")
      .Add(NameOf(signal))
      .Add(" in its thread ")
      .Add(static_cast<std::uintptr_t>(::gettid()), 10)
      .Add(":")
      .Write();
  Walk walk;
  static_cast<void>(_Unwind_Backtrace(Look, &walk));
}

}  // namespace dtrun::comm
