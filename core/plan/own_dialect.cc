#include "core/plan/steps.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/number_list.h"
#include "core/base/units.h"
#include "core/contract/environment.h"

namespace dtrun::plan {
namespace {

using Variables = ProcessVariables::Map;

std::string HostRanks(const Plan& plan) {
  std::vector<int> counts;
  for (const Host& host : plan.hosts) counts.push_back(host.local_size);
  return CountList(counts);
}

}  // namespace

CommonDialect CommonDialectOf(const Inputs& inputs, const Plan& plan) {
  Variables out = {
      {contract::kWorldSize, std::to_string(plan.world_size())},
      {contract::kHostCount, std::to_string(plan.hosts.size())},
      {contract::kHostRanks, HostRanks(plan)},
      {contract::kJob, plan.job},
      {contract::kGeneration, kTokenGeneration},
      {contract::kStore, kTokenStore},
      {contract::kRecorder, kTokenRecorder},
      {contract::kRunDir, kTokenRunDir},
      {contract::kConsole, kTokenConsole},
      {contract::kBackend, inputs.backend.name},
      {contract::kLocal, *inputs.spec.comm.local},
      {contract::kEmulatedHosts, std::to_string(*inputs.spec.comm.emulate_hosts)},
      {contract::kBackendTimeout, FormatDuration(*inputs.spec.backend.timeout)},
  };
  Variables hidden = {{contract::kJobKey, kTokenJobKey}};
  if (const std::string torch = *inputs.spec.backend.torch; torch != "script") {
    out[contract::kTorchBackend] = torch;
  }
  if (inputs.spec.cluster.port_range.has())
    out[contract::kPortRange] = *inputs.spec.cluster.port_range;
  if (inputs.backend.name != "none") {
    out[contract::kBackendPath] = inputs.backend.path;
    hidden[contract::kBackendOptions] = inputs.backend.options_json;
    if (inputs.device.backend) hidden[contract::kDeviceBackendOptions] = inputs.device.backend->options_json;
  }
  return {std::make_shared<const Variables>(std::move(out)), std::move(hidden)};
}

Variables HostDialect(const Inputs& inputs, const Plan& plan, std::size_t index) {
  const Host& host = plan.hosts[index];
  Variables out = {{contract::kLocalWorldSize, std::to_string(host.local_size)},
                   {contract::kNodeRank, std::to_string(index)}};
  if (inputs.network != nullptr) {
    out[contract::kInterface] = inputs.network->CandidateOf(index).interface;
    out[contract::kAddress] = host.address;
  }
  if (inputs.backend.name == "none") return out;
  const std::string id = FileIdOn(inputs.backend, index);
  out[contract::kBackendFileId] = id.empty() ? contract::kAnyFile : id;
  Variables devices = DeviceVariables(
      {inputs.spec, inputs.device, inputs.hardware, inputs.reported, inputs.network}, index);
  devices.erase(contract::kDeviceBackendOptions);  // hidden
  out.merge(devices);
  return out;
}

void AddRank(const Plan& plan, const Process& process, ProcessVariables* out) {
  if (process.rank_count == 1) {
    (*out)[contract::kRank] = std::to_string(process.rank);
    (*out)[contract::kLocalRank] = std::to_string(process.local_rank);
  } else {
    (*out)[contract::kFirstRank] =
        std::to_string(plan.hosts[static_cast<std::size_t>(process.host)].first_rank);
  }
}

}  // namespace dtrun::plan
