#include "core/process/segments.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/base/kernel_file.h"

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOfTorch = "torch_";

bool IsOfALibrary(std::string_view name) {
  constexpr std::string_view kBeginnings[] = {
      kOfTorch,                 // torch, sharing strategy file_system
      "psm_",                   // Python's multiprocessing.shared_memory
      "sem.mp-",                // Python's multiprocessing.Lock and the like
      "sem.loky-",              // joblib
      "__KMP_REGISTERED_LIB_",  // LLVM's and Intel's OpenMP
      "nccl-",                  // NCCL
      "cuda.shm.",              // CUDA between processes
      "ucx_shm_posix_",         // UCX
      "vader_segment.",         // Open MPI 4
      "sm_segment.",            // Open MPI 5
      "mpich_shar_tmp",         // MPICH
      "psm2_shm.",
      "psm3_shm.",  // Omni-Path
  };
  return std::ranges::any_of(kBeginnings, [&](auto beginning) { return name.starts_with(beginning); });
}

std::string MapsOf(const std::string& pid) { return ReadKernelFile("/proc/" + pid + "/maps"); }

}  // namespace

Segments::Segments(fs::path folder) : folder_(std::move(folder)) {
  for (const Found& found : List()) before_.insert(found.inode);
}

std::vector<Segments::Found> Segments::List() const {
  std::vector<Found> all;
  for (const fs::path& entry : EntriesOf(folder_)) {
    const std::string name = entry.filename().string();
    struct stat info {};
    if (!IsOfALibrary(name) || ::lstat(entry.c_str(), &info) != 0) continue;
    if (S_ISREG(info.st_mode) && info.st_uid == ::geteuid()) all.push_back({name, info.st_ino});
  }
  return all;
}

bool Segments::IsOurs(const Found& found) const {
  const auto known = ours_.find(found.name);
  return known != ours_.end() && known->second == found.inode;
}

bool Segments::TorchsWait() const {
  return std::ranges::any_of(List(), [this](const Found& found) {
    return found.name.starts_with(kOfTorch) && !before_.contains(found.inode) && !IsOurs(found);
  });
}

void Segments::Look(const std::function<std::vector<pid_t>()>& processes) {
  std::vector<Found> appeared = List();
  std::erase_if(appeared,
                [this](const Found& found) { return before_.contains(found.inode) || IsOurs(found); });
  if (appeared.empty()) return;
  for (const pid_t pid : processes()) {
    const std::string maps = MapsOf(std::to_string(pid));
    std::erase_if(appeared, [&](const Found& found) {
      const bool mapped = maps.find(" " + (folder_ / found.name).string() + "\n") != std::string::npos;
      if (mapped) ours_[found.name] = found.inode;
      return mapped;
    });
  }
}

std::vector<std::string> Segments::Remove() {
  if (ours_.empty()) return {};
  std::vector<Found> left = List();
  std::erase_if(left, [this](const Found& found) { return !IsOurs(found); });
  ours_.clear();
  if (left.empty()) return {};
  for (const fs::path& process : EntriesOf("/proc")) {
    const std::string pid = process.filename().string();
    if (std::atoi(pid.c_str()) <= 0) continue;
    const std::string maps = MapsOf(pid);
    std::erase_if(left, [&](const Found& found) {
      return maps.find(" " + (folder_ / found.name).string() + "\n") != std::string::npos;
    });
  }
  std::vector<std::string> removed;
  for (const Found& found : left) {
    if (::unlink((folder_ / found.name).c_str()) == 0) removed.push_back(found.name);
  }
  return removed;
}

}  // namespace dtrun::process
