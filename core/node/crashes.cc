#include "core/node/crashes.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "core/base/read_file.h"
#include "core/stacks/crash.h"

namespace dtrun::node {
namespace {

constexpr std::size_t kMostPrinted = std::size_t{16} << 10;  // of a rank; a stack is shorter

bool IsOfACrash(int signal) {
  constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  return std::ranges::find(kCrashes, signal) != std::end(kCrashes);
}

}  // namespace

void Crashes::Printed(int rank, std::string_view bytes) {
  std::string& kept = printed_[rank];
  if (bytes.size() > kMostPrinted) bytes.remove_prefix(bytes.size() - kMostPrinted);
  if (kept.size() + bytes.size() > 2 * kMostPrinted) kept.erase(0, kept.size() - kMostPrinted);
  kept.append(bytes);
}

void Crashes::Ended(int rank, const Process& process, const process::Ending& ending) {
  if (!first_ && IsOfACrash(ending.signal)) first_ = {rank, process, ending.signal, ending.core_dumped};
}

std::vector<protocol::CrashedAt> Crashes::Look(std::chrono::milliseconds patience) {
  if (!first_) return {};
  const auto& [pid, folder, program] = first_->process;
  stacks::Crash crash{.pid = pid, .signal = first_->signal, .printed = {}, .folder = folder, .core = {}};
  crash.program = program;
  crash.logged = log_.FaultOf(pid);
  if (const auto printed = printed_.find(first_->rank); printed != printed_.end())
    crash.printed = printed->second;
  if (first_->has_core)
    crash.core = stacks::CoreFile(ReadKernelFile("/proc/sys/kernel/core_pattern"), folder, pid, begun_);
  const char* const path = std::getenv("PATH");
  std::string place =
      stacks::CrashPlace(crash, path == nullptr ? "" : path, std::chrono::steady_clock::now() + patience);
  if (place.empty()) return {};
  return {{first_->rank, std::move(place)}};
}

}  // namespace dtrun::node
