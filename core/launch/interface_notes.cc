#include "core/launch/interface_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/environments/libraries.h"
#include "core/launch/environment.h"
#include "core/network/interface.h"
#include "core/preflight/check/checks.h"

namespace dtrun::launch {

void AddInterfaceNotes(const spec::JobSpec& spec, plan::Plan* plan) {
  const plan::Process& rank = plan->processes.front();
  auto variables = RankEnvironment();
  const std::string path = variables["PATH"];
  for (const auto& [name, value] : rank.env) variables[name] = value;
  std::erase_if(variables, [](const auto& one) { return !environments::NamesInterfaces(one.first); });
  if (variables.empty()) return;  // avoids loading libnl, which reads the interfaces
  auto interfaces = network::ReadInterfaces();
  if (!interfaces) return;
  const auto program = preflight::ProgramOf(spec.job.command->front(), rank.cwd, path);
  auto of_backend = preflight::VariablesOfBackend(plan->hosts.front().backend_facts);
  std::ranges::move(preflight::VariablesOfBackend(plan->hosts.front().device_facts),
                    std::back_inserter(of_backend));
  for (const preflight::Check& check :
       preflight::CheckInterfaceVariables({variables, program, of_backend, *std::move(interfaces)}))
    plan->warnings.push_back(fmt::format("on {} {}; {}", plan->hosts.front().name, check.what, check.fix));
}

}  // namespace dtrun::launch
