#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/plan/plan.h"
#include "core/preflight/check/checks.h"
#include "core/preflight/gpu_access.h"
#include "core/preflight/gpu_pairs.h"

namespace dtrun::preflight {
namespace {

// An unusable backend is a problem only if the job wants it; one usable backend of a list is enough.
void CheckBackends(const Request& request, const std::vector<BackendAnswer>& backends, Checks* to) {
  std::size_t wanted = 0, usable = 0;
  for (std::size_t i = 0; i < backends.size(); ++i) {
    wanted += request.backends[i].wanted ? 1 : 0;
    usable += request.backends[i].wanted && backends[i].why_not.empty() ? 1 : 0;
  }
  const bool problem = wanted > 0 && usable == 0;
  for (std::size_t i = 0; i < backends.size(); ++i) {
    const BackendAnswer& backend = backends[i];
    const std::string topic = "backend " + backend.name;
    if (backend.why_not.empty()) {
      to->push_back({topic, Level::kOk, backend.library.empty() ? "can be used" : backend.library});
      continue;
    }
    const bool bad = request.backends[i].needed || (problem && request.backends[i].wanted);
    to->push_back(
        {topic, bad ? Level::kProblem : Level::kNotHere,
         bad ? "cannot be used: " + backend.why_not : ListedReason(backend.name, backend.why_not),
         bad ? fmt::format("see: dtrun plugins describe {}; or choose another in backend.name", backend.name)
             : ""});
  }
}

// "until then ranks see NAME=1": variables that make the backend's library work without a feature.
std::string WithoutText(const BackendAnswer& backend) {
  std::string text;
  for (const auto& [name, value] : backend.info.env) {
    const auto fact = std::ranges::find(backend.info.facts,
                                        std::pair<std::string, std::string>(plan::kAgreeFact + name, value));
    if (fact == backend.info.facts.end()) continue;
    text += fmt::format("{}{}={}", text.empty() ? "; until then ranks see " : ", ", name, value);
  }
  return text;
}

// The trial's result for each pair, if there was a trial. Refusals are common and no obstacle.
void CheckGpuPairs(const std::vector<BackendAnswer>& backends, Checks* to) {
  for (const BackendAnswer& backend : backends) {
    const GpuPairs gpus = ReadGpuPairs(backend.info.facts);
    if (gpus.devices.size() < 2) continue;
    if (AllProven(gpus)) {
      to->push_back(
          {"gpu peers", Level::kOk,
           fmt::format("each of {} GPUs reads every other, tested by a copy", gpus.devices.size())});
      continue;
    }
    const bool broken =
        std::ranges::any_of(gpus.pairs, [](const GpuPair& pair) { return pair.verdict == "broken"; });
    to->push_back({"gpu peers", broken ? Level::kWarning : Level::kOk,
                   "which GPUs read the memory of which\n" + Table(gpus),
                   broken ? "look at IOMMU, ACS and driver" + WithoutText(backend) : ""});
  }
}

void CheckVariables(const Request& request, const std::vector<BackendAnswer>& backends, Checks* to) {
  auto interfaces = network::ReadInterfaces();
  if (!interfaces) return;  // CheckMachine reports that
  std::vector<std::string> read;
  for (std::size_t i = 0; i < backends.size(); ++i) {
    if (request.backends[i].wanted)
      std::ranges::move(VariablesOfBackend(backends[i].info.facts), std::back_inserter(read));
  }
  const auto program = ProgramOf(request.program, request.folder, request.search_path);
  std::ranges::move(CheckInterfaceVariables({request.variables, program, read, *std::move(interfaces)}),
                    std::back_inserter(*to));
}

}  // namespace

Checks CheckHost(const Request& request, const std::vector<BackendAnswer>& backends) {
  Checks checks;
  CheckNames(request, &checks);
  CheckPorts(request, &checks);
  CheckProgram(request, &checks);
  CheckMachine(request, &checks);
  CheckVariables(request, backends, &checks);
  CheckRdma("/", backends, &checks);
  CheckLimits(request, &checks);
  CheckBackends(request, backends, &checks);
  CheckGpuPairs(backends, &checks);
  return checks;
}

}  // namespace dtrun::preflight
