#include "under_test.h"

#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <system_error>

#include "dtrun/abi.h"
#include "sdk/conformance/load.h"

namespace dtrun::conformance::tool {
namespace {

namespace fs = std::filesystem;

// Where launchers say which of how many ranks a process is.
constexpr const char* kRankVariables[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                             {"PMI_RANK", "PMI_SIZE"},
                                             {"SLURM_PROCID", "SLURM_NTASKS"},
                                             {"RANK", "WORLD_SIZE"}};

}  // namespace

std::int32_t KindOf(const Arguments& arguments) {
  std::error_code problem;
  if (!fs::is_regular_file(arguments.plugin, problem)) {
    throw UsageError("'--plugin' is '" + arguments.plugin + "', which is no file" +
                     (problem ? " (" + problem.message() + ")" : "") + "; build the plugin first");
  }
  const std::int32_t kind = NameOfFile(arguments.plugin).kind;
  if (kind == 0) {
    throw UsageError(
        "'--plugin' is '" + arguments.plugin + "'; its file must be named libdtrun_backend_NAME.so, " +
        "libdtrun_launcher_NAME.so or libdtrun_device_NAME.so, NAME of a-z, 0-9, '_' and '-'; rename it");
  }
  return kind;
}

LaunchedProcess PlaceOf(const Arguments& arguments) {
  if (arguments.shared.empty()) return {};
  setenv("DTRUN_CONFORMANCE_SHARED", arguments.shared.c_str(), 1);
  for (const auto& [rank, size] : kRankVariables) {
    if (std::getenv(rank) == nullptr || std::getenv(size) == nullptr) continue;
    return ProcessFromEnvironment(rank, size, "DTRUN_CONFORMANCE_SHARED");
  }
  std::string names;
  for (const auto& variables : kRankVariables)
    names += (names.empty() ? "" : ", ") + std::string(variables[0]) + " and " + variables[1];
  throw std::runtime_error("the command of --launch has set no pair of these variables: " + names);
}

void Register(const Arguments& arguments, std::int32_t kind, const LaunchedProcess& place) {
  std::set<int> worlds, more = {5, 7};
  for (const int size : {1, 2, 3, 4}) worlds.insert(size);
  if (arguments.world_given) worlds.insert(arguments.world);
  if (arguments.wide) worlds.merge(more);
  const auto too_large = [&](int size) { return size > arguments.world; };
  std::erase_if(worlds, too_large);
  std::erase_if(more, too_large);
  if (place.size > 0) {
    worlds = {place.size};
    more.clear();
  }
  const BackendUnderTest plugin{.plugin = fs::absolute(arguments.plugin),
                                .options = arguments.options,
                                .environment = arguments.environment,
                                .worlds = {worlds.begin(), worlds.end()},
                                .more_worlds = {more.begin(), more.end()},
                                .process = place,
                                .most_ranks = place.size > 0 ? 0 : arguments.world,
                                .seed = arguments.seed,
                                .wide = arguments.wide};
  if (kind == DTRUN_KIND_LAUNCHER)
    RegisterLauncherSuite(plugin);
  else if (kind == DTRUN_KIND_DEVICE)
    RegisterDeviceSuite(plugin);
  else
    RegisterBackendSuite(plugin);
}

}  // namespace dtrun::conformance::tool
