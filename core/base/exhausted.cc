#include "core/base/exhausted.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "core/base/standard_output.h"

namespace dtrun {
namespace {

std::string memory_user;
std::unique_ptr<char[]> reserve;  // for the message
int exit_code = 0;
std::terminate_handler otherwise = nullptr;

[[noreturn]] void EndIfExhausted() {
  try {
    if (std::current_exception() != nullptr) throw;
  } catch (const std::bad_alloc& thrown) {
    reserve.reset();
    WriteMessage(fmt::format("dtrun: {}{}{}\n", memory_user, memory_user.empty() ? "" : ": ", Exhausted(thrown)));
    ::_exit(exit_code);
  } catch (...) {  // as it would have ended
  }
  otherwise();
  std::abort();
}

}  // namespace

void EndWhenExhausted(int code) {
  constexpr std::size_t kReserve = 256 << 10;
  reserve = std::make_unique<char[]>(kReserve);
  exit_code = code;
  if (otherwise == nullptr) otherwise = std::set_terminate(EndIfExhausted);
}

MemoryUser::MemoryUser(std::string what) { memory_user = std::move(what); }
MemoryUser::~MemoryUser() { memory_user.clear(); }

std::string Exhausted(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) == nullptr)
    return fmt::format("{}; look at `ulimit -a`", thrown.what());
  constexpr rlim_t kUnit = 1024;  // the unit of the shell's ulimit, in bytes
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (limited) return fmt::format("out of memory; raise `ulimit -v`, which is {}", limit.rlim_cur / kUnit);
  return "out of memory; end other programs of this host, or raise the memory limit of its cgroup";
}

}  // namespace dtrun
