#include <fmt/format.h>
#include <sched.h>

#include <cctype>
#include <filesystem>
#include <string>

#include "core/plan/build.h"

namespace dtrun::plan {
namespace {

// NVIDIA devices that the driver shows: /dev/nvidia0, /dev/nvidia1, ...
int CountGpus() {
  int count = 0;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("nvidia") && name.size() > 6 && std::isdigit(static_cast<unsigned char>(name[6])))
      ++count;
  }
  return count;
}

}  // namespace

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

Result<int> ProcessesPerHost(const config::Settings& settings) {
  constexpr char kKey[] = "job.processes_per_host";
  const option::Value& value = settings.Get(kKey);
  if (const auto* number = std::get_if<std::int64_t>(&value.data)) return static_cast<int>(*number);
  const std::string& word = settings.Text(kKey);
  if (word == "cpu") return UsableCores();
  const int gpus = CountGpus();
  if (gpus > 0) return gpus;
  if (word == "auto") return UsableCores();
  return Error{
      DTRUN_INVALID_ARGUMENT,
      fmt::format("{}: {} = \"gpu\", but this host shows no /dev/nvidia<N>; write a number or \"cpu\"",
                  value.origin.place, kKey)};
}

}  // namespace dtrun::plan
