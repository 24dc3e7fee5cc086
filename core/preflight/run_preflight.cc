#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "core/options/snapshot.h"
#include "core/plugin/plugin.h"
#include "core/pmi/kind.h"
#include "core/preflight/check/checks.h"
#include "core/preflight/gpu_access.h"
#include "core/preflight/modules.h"
#include "core/preflight/preflight.h"
#include "core/preflight/routes.h"

namespace dtrun::preflight {
namespace {

BackendAnswer Try(const BackendRequest& backend, const Request& request,
                  const std::vector<std::string>& environment) {
  BackendAnswer answer{backend.name, backend.why_not};
  if (!answer.why_not.empty()) return answer;
  const auto refuse = [&](const std::string& why) {
    answer.why_not = why;
    return answer;
  };
  if (backend.pmix) {
    if (const Status servable = pmi::ServableHere(pmi::Kind::kPmix); !servable)
      return refuse(servable.error().text);
  }
  if (backend.name == "none") return answer;  // nothing to check
  std::error_code none;
  if (!std::filesystem::exists(backend.path, none)) return refuse("'" + backend.path + "' does not exist");
  auto probe = plugin::Probe::Start(
      {plugin::Kind::kBackend, backend.name, backend.path, {}, {}, {}, backend.file_id}, environment);
  if (!probe) return refuse(probe.error().text);
  const Result<dtrun_options> options = options::FromJson(backend.options_json);
  if (!options) return refuse(options.error().text);
  auto info = (*probe)->Launch(*options, request.host_count, request.local_ranks);
  if (!info) return refuse(info.error().text);
  answer.library = FactOf(info->facts, "library");
  if (const std::string p2p = FactOf(info->facts, "p2p"); !p2p.empty()) answer.library += "; p2p " + p2p;
  answer.why_not = plugin::Unusable(*info);
  if (MovesDeviceMemory(*info)) answer.why_not = WithGpuAccess(std::move(answer.why_not));
  std::erase_if(info->facts, [](const auto& fact) { return fact.first == "unusable"; });
  answer.info = *std::move(info);
  return answer;
}

Check ModulesCheck(const Answer& answer) {
  if (answer.missing_modules.empty())
    return {"modules", Level::kOk, "the Python modules that the job needs are installed"};
  return {"modules", Level::kProblem, answer.missing_modules,
          "install it there, or name the interpreter that has it in job.command"};
}

}  // namespace

Answer RunPreflight(const Request& request, const std::vector<std::string>& environment) {
  Answer answer;
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  answer.clock_seconds = now.count();
  for (const BackendRequest& backend : request.backends)
    answer.backends.push_back(Try(backend, request, environment));
  answer.missing_modules = MissingModules(request.modules, environment);
  if (request.checks) answer.checks = CheckHost(request, answer.backends);
  if (request.checks && !request.modules.names.empty()) answer.checks.push_back(ModulesCheck(answer));
  return answer;
}

std::string FactOf(const Facts& facts, std::string_view key) {
  const auto fact =
      std::ranges::find(facts, key, [](const auto& one) { return std::string_view(one.first); });
  return fact == facts.end() ? "" : fact->second;
}

const char* LevelName(Level level) {
  constexpr const char* kNames[] = {"not here", "ok", "warning", "problem"};
  return kNames[static_cast<int>(level)];
}

}  // namespace dtrun::preflight
