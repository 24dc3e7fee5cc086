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

void Crashes::Ended(int rank, pid_t pid, const process::Ending& ending, const std::filesystem::path& folder) {
  if (!first_ && IsOfACrash(ending.signal)) first_ = {rank, pid, ending.signal, ending.core_dumped, folder};
}

std::vector<protocol::CrashedAt> Crashes::Look(std::chrono::milliseconds patience) const {
  if (!first_) return {};
  stacks::Crash crash{.pid = first_->pid, .signal = first_->signal, .printed = {}, .folder = {}, .core = {}};
  crash.folder = first_->folder;
  if (const auto printed = printed_.find(first_->rank); printed != printed_.end())
    crash.printed = printed->second;
  if (first_->has_core)
    crash.core =
        stacks::CoreFile(ReadKernelFile("/proc/sys/kernel/core_pattern"), crash.folder, first_->pid, begun_);
  const char* const path = std::getenv("PATH");
  std::string place =
      stacks::CrashPlace(crash, path == nullptr ? "" : path, std::chrono::steady_clock::now() + patience);
  if (place.empty()) return {};
  return {{first_->rank, std::move(place)}};
}

}  // namespace dtrun::node
