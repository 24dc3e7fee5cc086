#include "guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <stdexcept>

namespace dtrun::conformance {
namespace {

// Of the guards that exist; read by the handler of SIGSEGV.
struct Mark {
  std::atomic<const char*> name{nullptr};
  std::atomic<unsigned char*> page{nullptr};
  std::atomic<std::size_t> bytes{0};
};
std::array<Mark, 64> marks;

std::size_t PageBytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

struct sigaction before;  // what ExplainCrashesBehindGuards found

// Writes a line and lets the crash happen again, for the handler from before.
void Explain(int, siginfo_t* info, void*) {
  const auto* const address = static_cast<const unsigned char*>(info->si_addr);
  for (const Mark& mark : marks) {
    const unsigned char* const page = mark.page;
    if (mark.name == nullptr || address < page || address >= page + sysconf(_SC_PAGESIZE)) continue;
    char line[200];
    const int size = std::snprintf(line, sizeof line, "touched byte %d behind a %s of %zu bytes\n",
                                   static_cast<int>(address - page) + 1, mark.name.load(), mark.bytes.load());
    if (size > 0 && write(STDERR_FILENO, line, static_cast<std::size_t>(size)) < 0) break;
  }
  sigaction(SIGSEGV, &before, nullptr);
}

}  // namespace

GuardedMemory::GuardedMemory(const char* name, std::size_t bytes) : size_(bytes) {
  const std::size_t page = PageBytes(), used = (bytes + page - 1) / page * page;
  mapped_ = used + page;
  void* const memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for a guard page");
  pages_ = static_cast<unsigned char*>(memory);
  data_ = pages_ + used - bytes;
  std::memset(pages_, kGarbage, used);
  mprotect(pages_ + used, page, PROT_NONE);
  for (Mark& mark : marks) {
    const char* none = nullptr;
    if (!mark.name.compare_exchange_strong(none, name)) continue;
    mark.bytes = bytes;
    mark.page = pages_ + used;
    return;
  }
}

GuardedMemory::~GuardedMemory() {
  for (Mark& mark : marks) {
    if (mark.page != pages_ + mapped_ - PageBytes()) continue;
    mark.page = nullptr;
    mark.name = nullptr;
  }
  munmap(pages_, mapped_);
}

void ExplainCrashesBehindGuards() {
  struct sigaction action {};
  action.sa_sigaction = &Explain;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &before);
}

}  // namespace dtrun::conformance
