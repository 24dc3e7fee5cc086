#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/contract/environment.h"
#include "core/plan/at.h"
#include "core/plan/steps.h"

namespace dtrun::plan {
namespace {

std::string_view KindOf(binding::Vendor vendor) {
  return vendor == binding::Vendor::kNvidia ? "cuda" : "rocm";
}

// A host that has not joined yet is assumed to equal this one.
const Hardware& HardwareOf(const RouteInputs& inputs, std::size_t host) {
  return host < inputs.reported.size() ? inputs.reported[host] : inputs.hardware;
}

bool SeesGpus(const RouteInputs& inputs, std::size_t host) { return !HardwareOf(inputs, host).gpus.empty(); }

// Whether this job may use device memory.
bool CanHaveDevices(const RouteInputs& inputs, std::size_t hosts) {
  if (inputs.device.named || inputs.device.backend || !inputs.device.kind.empty()) return true;
  if (inputs.spec.job.processes_per_host.is("gpu")) return true;
  for (std::size_t i = 0; i < hosts; ++i) {
    if (SeesGpus(inputs, i)) return true;
  }
  return false;
}

// The device kind in the config, else the GPUs' kind.
std::string KindOf(const RouteInputs& inputs, std::size_t hosts) {
  if (!inputs.device.kind.empty()) return inputs.device.kind;
  for (std::size_t i = 0; i < hosts; ++i) {
    if (SeesGpus(inputs, i)) return std::string(KindOf(HardwareOf(inputs, i).vendor));
  }
  return "cuda";
}

// dtrun itself detects devices of these two kinds; any other kind is detected only by its device plugin.
bool IsSeen(std::string_view kind) { return kind == "cuda" || kind == "rocm"; }

// The backend's fact about paths between GPUs; disabled on one host means disabled on all.
std::string PeerText(const std::vector<std::pair<std::string, std::string>>& facts) {
  const auto p2p = std::ranges::find(facts, std::string("p2p"), [](const auto& one) { return one.first; });
  if (p2p == facts.end()) return {};
  const std::string& text = p2p->second;
  const bool off = text.starts_with("off") || (!text.starts_with("on") && text.find("off") != text.npos);
  return off ? ", p2p off" : ", p2p on";
}

std::string Fact(const std::vector<std::pair<std::string, std::string>>& facts, std::string_view key) {
  const auto fact =
      std::ranges::find(facts, key, [](const auto& one) { return std::string_view(one.first); });
  return fact == facts.end() ? "" : fact->second;
}

// "shm+gloo": the transport of the ranks in host memory.
std::string HostCarrier(const RouteInputs& inputs, const Plan& plan) {
  const bool several = plan.hosts.size() > 1 || *inputs.spec.comm.emulate_hosts > 1;
  if (inputs.spec.comm.local.is("none")) return plan.backend;
  return several ? "shm+" + plan.backend : "shm";
}

Route HostRoute(const RouteInputs& inputs, const Plan& plan) {
  Route route{"cpu", HostCarrier(inputs, plan), ""};
  if (inputs.network != nullptr) {
    route.by += " on " + inputs.network->CandidateOf(0).interface;
  } else if (const std::string interface = Fact(plan.backend_facts, "interface");
             plan.hosts.size() > 1 && !interface.empty()) {
    route.by += " on " + interface;
  }
  return route;
}

std::string HostsWithoutGpus(const RouteInputs& inputs, const Plan& plan) {
  std::string names;
  for (std::size_t i = 0; i < plan.hosts.size(); ++i) {
    if (!SeesGpus(inputs, i)) names += (names.empty() ? "" : ", ") + plan.hosts[i].name;
  }
  return names;
}

// All ranks of a job use one kind of device.
Status CheckKinds(const RouteInputs& inputs, Plan* plan) {
  std::string kinds;
  bool differ = false;
  std::string first = inputs.device.kind;
  for (std::size_t i = 0; i < plan->hosts.size(); ++i) {
    if (!SeesGpus(inputs, i)) continue;
    const binding::Vendor vendor = HardwareOf(inputs, i).vendor;
    if (first.empty()) first = KindOf(vendor);
    differ = differ || (IsSeen(first) && KindOf(vendor) != first);
    kinds += fmt::format("{}{} has {} GPUs", kinds.empty() ? "" : ", ", plan->hosts[i].name,
                         vendor == binding::Vendor::kNvidia ? "NVIDIA" : "AMD");
  }
  if (!differ) return {};
  const bool wanted = inputs.device.named || inputs.device.backend || !inputs.device.kind.empty();
  const std::string wrong =
      fmt::format("the devices of a job are of one kind{}, and {}; leave out the hosts of the other kind",
                  inputs.device.kind.empty() ? "" : fmt::format(", here {}", inputs.device.kind), kinds);
  if (wanted) return At(inputs.spec.backend.name, wrong);
  if (inputs.spec.job.processes_per_host.is("gpu")) return At(inputs.spec.job.processes_per_host, wrong);
  plan->warnings.push_back(wrong);
  return {};
}

Error NoStaging(const RouteInputs& inputs, const Plan& plan, const std::string& kind) {
  const DeviceMemory& device = inputs.device;
  return At(inputs.spec.backend.staging,
            "\"off\", and no backend moves {} memory ({}); set it to \"auto\", or {}", kind,
            device.why_not.empty() ? plan.backend + " moves host memory" : device.why_not,
            device.kind.empty() ? "leave that backend out of backend.name"
                                : fmt::format("leave {} out of backend.name", kind));
}

// The route for memory that no backend moves.
Result<Route> StagedRoute(const RouteInputs& inputs, const Plan& plan, const std::string& kind) {
  const DeviceMemory& device = inputs.device;
  const std::string why = device.why_not.empty() ? plan.backend + " moves host memory" : device.why_not;
  if (inputs.spec.backend.staging.is("off")) {
    if (device.named || !device.kind.empty()) return NoStaging(inputs, plan, kind);
    return Route{kind, "none", fmt::format("because backend.staging is \"off\" and {}", why)};
  }
  const bool has_plugin =
      std::ranges::find(device.plugins, kind, &DevicePlugin::name) != device.plugins.end();
  if (has_plugin) return Route{kind, "staging over " + HostCarrier(inputs, plan), "because " + why};
  const std::string missing =
      device.no_plugins.empty() ? fmt::format("there is no device plugin '{}'", kind) : device.no_plugins;
  if (!device.kind.empty()) {
    return At(inputs.spec.backend.name,
              "{} memory would be staged over {}, because {}, and {}; add the folder of "
              "libdtrun_device_{}.so with --plugin-dir or plugins.path",
              kind, plan.backend, why, missing, kind);
  }
  return Route{kind, "none", fmt::format("because {}, and {}", why, missing)};
}

Result<Route> DeviceRoute(const RouteInputs& inputs, const Plan& plan) {
  const DeviceMemory& device = inputs.device;
  const std::string kind = KindOf(inputs, plan.hosts.size());
  if (device.backend) {
    const std::string library = Fact(plan.device_facts, "library");
    Route route{kind, plan.device_backend, ""};
    if (!library.empty()) route.by += fmt::format(" ({}{})", library, PeerText(plan.device_facts));
    return route;
  }
  if (device.by_host) return Route{kind, plan.backend, ""};
  auto route = StagedRoute(inputs, plan, kind);
  const std::string without = HostsWithoutGpus(inputs, plan);
  if (route && IsSeen(kind) && !without.empty()) {
    route->why += fmt::format("{}no GPU is visible on {}", route->why.empty() ? "" : "; ", without);
  }
  return route;
}

}  // namespace

Status AddRoutes(const RouteInputs& inputs, Plan* plan) {
  if (plan->backend == "none") return {};
  if (inputs.device.backend) {
    plan->device_backend = inputs.device.backend->shown();
    AddDeviceFacts(*inputs.device.backend, plan);
  }
  if (Status same = CheckKinds(inputs, plan); !same) return same;
  if (!inputs.device.asked || !CanHaveDevices(inputs, plan->hosts.size())) return {};
  auto of_device = DeviceRoute(inputs, *plan);
  if (!of_device) return std::move(of_device).error();
  plan->routes = {HostRoute(inputs, *plan), *std::move(of_device)};
  return {};
}

std::map<std::string, std::string> DeviceVariables(const RouteInputs& inputs, std::size_t host) {
  std::map<std::string, std::string> out = {{contract::kStaging, *inputs.spec.backend.staging}};
  if (const auto& backend = inputs.device.backend) {
    out[contract::kDeviceBackend] = backend->name;
    out[contract::kDeviceBackendPath] = backend->path;
    if (const std::string id = FileIdOn(*backend, host); !id.empty())
      out[contract::kDeviceBackendFileId] = id;
    out[contract::kDeviceBackendOptions] = backend->options_json;
  }
  std::string devices;
  for (const DevicePlugin& plugin : inputs.device.plugins) {
    devices += fmt::format("{}{}={}{}", devices.empty() ? "" : ":", plugin.name, plugin.path,
                           plugin.id.empty() ? "" : "#" + plugin.id);
  }
  if (!devices.empty()) out[contract::kDevices] = devices;
  return out;
}

}  // namespace dtrun::plan
