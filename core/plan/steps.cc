#include "core/plan/steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/number.h"
#include "core/base/text.h"
#include "core/contract/environment.h"

namespace dtrun::plan {

namespace {

// At most this many texts per fact are shown; the run directory has the rest.
constexpr std::size_t kMostTexts = 3;
constexpr std::size_t kMostNames = 4;

using Facts = std::vector<std::pair<std::string, std::string>>;
using Variables = ProcessVariables::Map;

std::string Names(const std::vector<std::string>& hosts) {
  if (hosts.size() > kMostNames) return fmt::format("{} hosts", hosts.size());
  return fmt::format("{}", fmt::join(hosts, ", "));
}

// Each fact of the hosts once, with merged values.
Facts ToldOnce(const std::vector<Host>& hosts, Facts Host::*facts) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_key;  // texts by host
  std::map<std::string, std::size_t> place_of;                           // in by_key
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    for (const auto& [key, text] : hosts[i].*facts) {
      if (key.starts_with(kPeerFact) || key.starts_with(kAgreeFact) || key.starts_with(kByFact)) continue;
      const auto [place, fresh] = place_of.emplace(key, by_key.size());
      if (fresh) by_key.emplace_back(key, std::vector<std::string>(hosts.size()));
      by_key[place->second].second[i] = text;
    }
  }
  Facts told;
  for (const auto& [key, texts] : by_key) told.emplace_back(key, TellByHost(hosts, texts));
  return told;
}

Error Unknown(std::string_view name, const ProcessVariables& variables) {
  if (std::getenv(std::string(name).c_str()) != nullptr) {
    return Error::Of(DTRUN_INVALID_ARGUMENT,
                     "variables of the environment are not expanded here, as '${{{0}}}'; write its value, or "
                     "have a shell do it: sh -c with '$${{{0}}}'",
                     name);
  }
  std::vector<std::string> names;
  for (const auto& [key, value] : variables) names.push_back(key);
  std::string hint;
  if (auto nearest = Nearest(name, names)) {
    hint = fmt::format("did you mean '${{{}}}'? ", *nearest);
  } else {
    std::erase_if(names, [](const std::string& one) { return one.starts_with("DTRUN_"); });
    hint = fmt::format("known are {} and dtrun's own; ", fmt::join(names, ", "));
  }
  return Error::Of(DTRUN_INVALID_ARGUMENT,
                   "unknown placeholder '${{{0}}}'; {1}'$${{{0}}}' passes '${{{0}}}' to the program", name,
                   hint);
}

}  // namespace

const plugin::LaunchInfo& InfoOf(const Backend& backend, std::size_t host) {
  static const plugin::LaunchInfo kNone;
  if (backend.info.empty()) return kNone;
  return backend.info[host < backend.info.size() ? host : 0];
}

std::string FileIdOn(const Backend& backend, std::size_t host) {
  return host < backend.info.size() ? backend.info[host].file_id : std::string();
}

std::string TellByHost(const std::vector<Host>& hosts, const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::vector<std::string>>> said;  // text, and the hosts that have it
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) continue;
    auto known = std::ranges::find(said, texts[i], [](const auto& one) { return one.first; });
    if (known == said.end()) known = said.insert(known, {texts[i], {}});
    known->second.push_back(hosts[i].name);
  }
  if (said.empty()) return {};
  if (said.size() == 1) return said.front().first;
  std::string out;
  std::size_t untold = 0;
  for (std::size_t i = 0; i < said.size(); ++i) {
    const auto& [text, by] = said[i];
    if (i >= kMostTexts) {
      untold += by.size();
    } else {
      out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", Names(by), text);
    }
  }
  return untold == 0 ? out : out + fmt::format("; another on each of {} more, in plan.json", untold);
}

void AddFacts(const Backend& backend, Plan* plan) {
  for (std::size_t i = 0; i < plan->hosts.size(); ++i)
    plan->hosts[i].backend_facts = InfoOf(backend, i).facts;
  plan->backend_facts = ToldOnce(plan->hosts, &Host::backend_facts);
}

void AddDeviceFacts(const Backend& backend, Plan* plan) {
  for (std::size_t i = 0; i < plan->hosts.size(); ++i) plan->hosts[i].device_facts = InfoOf(backend, i).facts;
  plan->device_facts = ToldOnce(plan->hosts, &Host::device_facts);
}

CommonDialect CommonDialectOf(const Inputs& inputs, const Plan& plan) {
  std::vector<int> ranks;  // by host
  for (const Host& host : plan.hosts) ranks.push_back(host.local_size);
  Variables out = {
      {contract::kWorldSize, std::to_string(plan.world_size())},
      {contract::kHostCount, std::to_string(plan.hosts.size())},
      {contract::kHostRanks, CountList(ranks)},
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
  if (*inputs.spec.trace.enabled) out[contract::kTrace] = std::to_string(*inputs.spec.trace.size);
  if (inputs.spec.cluster.port_range.has()) out[contract::kPortRange] = *inputs.spec.cluster.port_range;
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
  Variables devices =
      DeviceVariables({inputs.spec, inputs.device, inputs.hardware, inputs.reported, inputs.network}, index);
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

Result<std::string> Expand(std::string_view text, const ProcessVariables& variables) {
  std::string out;
  while (!text.empty()) {
    if (text.starts_with("$${")) {
      out += "${";
      text.remove_prefix(3);
    } else if (text.starts_with("${")) {
      const std::size_t end = text.find('}');
      if (end == std::string_view::npos) {
        return Error::Of(DTRUN_INVALID_ARGUMENT,
                         "'{}' lacks a closing brace; write '$${{' for a literal '${{'", text);
      }
      const std::string name(text.substr(2, end - 2));
      const auto found = variables.find(name);
      if (found == variables.end()) return Unknown(name, variables);
      out += found->second;
      text.remove_prefix(end + 1);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace dtrun::plan
