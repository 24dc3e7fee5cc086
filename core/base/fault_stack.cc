#include "core/base/fault_stack.h"

#include <sys/mman.h>

#include <csignal>
#include <cstddef>
#include <utility>

namespace dtrun {
namespace {

class FaultStack {
 public:
  void Have() {
    if (std::exchange(asked_, true)) return;
    stack_t now{};
    if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
    void* const memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) return;
    now = {.ss_sp = memory, .ss_flags = 0, .ss_size = kBytes};
    if (sigaltstack(&now, nullptr) == 0) memory_ = memory;
    if (memory_ == nullptr) munmap(memory, kBytes);
  }
  ~FaultStack() {
    stack_t now{};
    if (memory_ == nullptr || sigaltstack(nullptr, &now) != 0) return;
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    if (now.ss_sp != memory_ || sigaltstack(&none, nullptr) == 0) munmap(memory_, kBytes);
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{64} << 10;
  bool asked_ = false;
  void* memory_ = nullptr;
};
thread_local FaultStack fault_stack;

}  // namespace

void HaveFaultStack() { fault_stack.Have(); }

}  // namespace dtrun
