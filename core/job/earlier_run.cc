#include "core/job/earlier_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/own_folder.h"
#include "core/base/text.h"

namespace dtrun::job {
namespace {

constexpr int kMostTries = 1000;

bool IsOfARun(std::string_view name) {
  constexpr std::string_view kRecords[] = {"plan.json",    "config.json",  "environment.json", "runtime.json",
                                           "verdict.json", "network.json", "network.txt",      "stacks.txt",
                                           "calls.txt",    "dtrun.log",    "dtrun.1.log",      "dtrun.2.log"};
  const auto numbered = [name](std::string_view prefix) {
    return name.starts_with(prefix) && IsDigits(name.substr(prefix.size()).substr(0, 1));
  };
  return std::ranges::find(kRecords, name) != std::end(kRecords) || numbered("rank-") ||
         numbered("generation-");
}

std::vector<std::string> EntriesOfARun(int folder) {
  std::vector<std::string> names;
  UniqueFd listed(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(listed.get()), ::closedir);
  if (entries == nullptr) return names;
  listed.Release();
  while (const dirent* const entry = ::readdir(entries.get())) {
    if (IsOfARun(entry->d_name)) names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace

Result<std::string> MoveEarlierRun(int folder, const std::string& shown, const std::string& name,
                                   mode_t mode) {
  const std::vector<std::string> names = EntriesOfARun(folder);
  const auto has = [&names](std::string_view one) { return std::ranges::find(names, one) != names.end(); };
  const bool of_a_run = has("verdict.json") || has("plan.json");
  if (has("config.json") && !of_a_run) {  // for example in a model's folder
    return Error{DTRUN_INVALID_ARGUMENT, "its config.json was not written by dtrun and would be replaced"};
  }
  if (!of_a_run) return std::string();
  std::string moved = name;
  UniqueFd made;
  for (int attempt = 2, number = 0; !made; ++attempt) {
    made = MakeFolderAt(folder, moved, mode, number);
    if (!made && (number != EEXIST || attempt > kMostTries))
      return Error::System(fmt::format("make '{}/{}' for the previous run", shown, moved), number);
    if (!made) moved = fmt::format("{}-{}", name, attempt);
  }
  for (const std::string& one : names) {
    if (::renameat(folder, one.c_str(), made.get(), one.c_str()) != 0)
      return Error::System(fmt::format("move '{}/{}' of the previous run to '{}'", shown, one, moved), errno);
  }
  return moved;
}

}  // namespace dtrun::job
