#include "core/plan/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/number.h"
#include "core/base/text.h"
#include "core/binding/group_limits.h"
#include "core/binding/machine.h"
#include "core/contract/environment.h"
#include "core/hosts/host_slots.h"
#include "core/hosts/this_machine.h"
#include "core/plan/at.h"
#include "core/plan/hosts.h"

namespace dtrun::plan {
namespace {

constexpr char kGiven[] = "cluster.gpus";
constexpr int kNoneOfTheHosts = -1;

bool PerRank(const std::string& value) { return value.find("${") != std::string::npos; }

bool CountedByGpus(const spec::JobSpec& spec, const Hardware& hardware) {
  const spec::CountField& asked = spec.job.processes_per_host;
  return asked.is("gpu") || (asked.is("auto") && !hardware.gpus.empty());
}

// Whether the config requests GPUs by number.
bool WantsGpus(const spec::JobSpec& spec) {
  return spec.job.gpu_visibility.is("own") || spec.job.processes_per_host.is("gpu");
}

std::string HostText(const Hardware& hardware) {
  return hardware.name.empty() ? "this host" : "host " + hardware.name;
}

// Where the host has GPUs, those that cluster.gpus gives to it are among them.
Status CheckGiven(const spec::JobSpec& spec, const Hardware& hardware) {
  if (!hardware.gpus_given || hardware.gpus_there == 0 || binding::MeansNone(*hardware.gpus_given)) return {};
  if (hardware.gpus.size() == Split(*hardware.gpus_given, ',').size()) return {};
  return At(spec.cluster.gpus, "'{}' is for {}, which has {} GPU{}, from 0; correct the list",
            *hardware.gpus_given, HostText(hardware), hardware.gpus_there,
            hardware.gpus_there == 1 ? "" : "s");
}

// The NUMA node of each rank's first GPU; none when there are too few GPUs.
std::vector<int> GpuNodes(const std::vector<binding::Gpu>& gpus, std::size_t ranks, bool own) {
  std::vector<int> out;
  if (gpus.size() < ranks) return out;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    out.push_back(gpus[own ? rank * gpus.size() / ranks : rank].numa);
  return out;
}

}  // namespace

const std::map<std::string, std::string>& UserVariables(const spec::JobSpec& spec) {
  static const std::map<std::string, std::string> kNone;
  return spec.job.env.has() ? *spec.job.env : kNone;
}

Result<HostOffer> OfferHere() {
  auto topology = binding::ReadMachine();
  if (!topology) return topology.error();
  topology->quota = binding::ReadGroupLimits().whole_processors();
  return HostOffer{*std::move(topology), binding::ReadGpus("/"), hosts::HostName()};
}

Hardware HardwareOf(const spec::JobSpec& spec, const std::map<std::string, std::string>& environment,
                    const HostOffer& offer) {
  const auto& user = UserVariables(spec);
  const auto given = GpusGiven(spec, offer.number);
  const auto variable = [&](const char* name) -> std::optional<std::string> {
    if (given && name == std::string_view(binding::ListVariable(offer.gpus.vendor))) return given;
    // A list with placeholders is another one for each rank; it says nothing of the host.
    if (const auto own = user.find(name); own != user.end() && !PerRank(own->second)) return own->second;
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
  return {
      offer.topology,
      binding::VisibleGpus(offer.gpus, variable),
      offer.gpus.vendor,
      offer.name,
      offer.number,
      offer.gpus.devices.size(),
      given ? fmt::format("{} gives '{}'", kGiven, *given) : binding::ListText(offer.gpus.vendor, variable),
      given};
}

std::optional<std::string> GpusGiven(const spec::JobSpec& spec, int host) {
  if (host == kNoneOfTheHosts || !spec.cluster.gpus.has()) return std::nullopt;
  const auto& lists = *spec.cluster.gpus;
  if (!spec.cluster.hosts.has())  // the loader has seen to it that the one entry is this machine's
    return lists.empty() ? std::nullopt : std::optional(lists.begin()->second);
  const auto found = lists.find(spec.listed[static_cast<std::size_t>(host)].name);
  return found == lists.end() ? std::nullopt : std::optional(found->second);
}

Hardware HardwareHere(const spec::JobSpec& spec, const std::map<std::string, std::string>& environment,
                      HostOffer offer) {
  if (HasCluster(spec)) offer.number = kNoneOfTheHosts;
  return HardwareOf(spec, environment, offer);
}

Hardware Assumed(const spec::JobSpec& spec, const Hardware& here, int host) {
  Hardware out = here;
  if (!HasCluster(spec)) return out;
  out.gpus_given = GpusGiven(spec, host);
  if (!out.gpus_given) return out;
  out.gpus.clear();
  out.gpus_there = 0;
  if (binding::MeansNone(*out.gpus_given)) return out;
  for (const std::string_view name : Split(*out.gpus_given, ','))
    out.gpus.push_back({"", -1, std::string(Trim(name))});
  return out;
}

std::vector<std::string> GpuListWarnings(const spec::JobSpec& spec, const std::vector<Hardware>& hosts) {
  const auto& user = UserVariables(spec);
  std::vector<std::string> warnings;
  for (const Hardware& host : hosts) {
    const auto own = user.find(binding::ListVariable(host.vendor));
    const bool typed = host.gpus_given
                           ? !binding::MeansNone(*host.gpus_given)
                           : own != user.end() && !PerRank(own->second) && !binding::MeansNone(own->second);
    std::string wrong;
    if (typed && host.gpus.empty()) {
      wrong = fmt::format("{}, which selects no GPU of {} (it has {})", host.gpu_list, HostText(host),
                          host.gpus_there == 0 ? "none" : std::to_string(host.gpus_there));
    } else if (!host.gpus.empty() && host.gpus_there == 0 && (typed || WantsGpus(spec))) {
      wrong = fmt::format("{}, and no GPU is there on {} that could have such slices", host.gpu_list,
                          HostText(host));
    }
    if (wrong.empty()) continue;
    wrong += fmt::format("; correct {}", host.gpus_given ? kGiven
                                         : typed         ? "job.env"
                                                         : "that variable, or unset it");
    if (std::ranges::find(warnings, wrong) == warnings.end()) warnings.push_back(std::move(wrong));
  }
  return warnings;
}

Result<int> ProcessesPerHost(const spec::JobSpec& spec, const Hardware& hardware) {
  if (const auto* number = spec.job.processes_per_host.as<std::int64_t>()) return static_cast<int>(*number);
  if (CountedByGpus(spec, hardware)) {
    if (!hardware.gpus.empty()) return static_cast<int>(hardware.gpus.size());
    std::string why = "there is no /dev/nvidia<N> and no AMD device";
    if (!hardware.gpu_list.empty()) {
      why = hardware.gpus_there == 0 ? why + fmt::format(" ({})", hardware.gpu_list)
                                     : fmt::format("{}, which selects none of its {} GPUs", hardware.gpu_list,
                                                   hardware.gpus_there);
    }
    return At(spec.job.processes_per_host, "\"gpu\", but no GPU is visible on {}: {}; {}", HostText(hardware),
              why, hardware.gpus_there == 0 ? "write a number or \"cpu\"" : "correct that list, or unset it");
  }
  return hardware.topology.core_count();
}

Result<Placement> Place(const spec::JobSpec& spec, const Hardware& hardware, int ranks, bool device_backend) {
  Placement out;
  const bool own = spec.job.gpu_visibility.is("own");
  if (Status there = CheckGiven(spec, hardware); !there) return there.error();
  if (hardware.gpus_given) {
    out.gpu_variable = binding::ListVariable(hardware.vendor);
    out.gpus_given = *hardware.gpus_given;
  }
  if (own) {
    out.gpu_variable = binding::ListVariable(hardware.vendor);
    const auto& user = UserVariables(spec);
    if (const auto found = user.find(out.gpu_variable); found != user.end() && PerRank(found->second)) {
      return At(spec.job.gpu_visibility,
                "\"own\" sets {} for each rank, and so does job.env with '{}'; remove one of them",
                out.gpu_variable, found->second);
    }
    auto lists = binding::OwnLists(hardware.gpus, ranks, hardware.gpu_list, hardware.gpus_there);
    if (!lists) return At(spec.job.gpu_visibility, lists.error().text);
    out.gpu_lists = std::move(*lists);
  }

  const std::string& policy = *spec.job.bind;
  if (!binding::KnowsMachine() && policy != "none" && policy != "auto") {
    return At(spec.job.bind,
              "'{}' needs hwloc, and this dtrun was built without it; write "
              "\"none\", or build dtrun where libhwloc-dev is installed",
              policy);
  }
  const bool gpus_in_use = own || device_backend || CountedByGpus(spec, hardware);
  out.processors = binding::Bind(
      hardware.topology, ranks, binding::ParsePolicy(binding::KnowsMachine() ? policy : "none"),
      gpus_in_use ? GpuNodes(hardware.gpus, static_cast<std::size_t>(ranks), own) : std::vector<int>{});
  if (!binding::KnowsMachine()) out.processors.text = "none (built without hwloc)";
  std::set<int> together;
  for (const auto& set : out.processors.processors) together.insert(set.begin(), set.end());
  out.processor_count = static_cast<int>(together.size());
  return out;
}

void PutInPlace(const Placement& placement, Process* process) {
  std::set<int> processors;
  std::string gpus;
  for (int local = process->local_rank; local < process->local_rank + process->rank_count; ++local) {
    const auto rank = static_cast<std::size_t>(local);
    const auto& set = placement.processors.processors[rank];
    processors.insert(set.begin(), set.end());
    if (!placement.gpu_lists.empty()) gpus += (gpus.empty() ? "" : ",") + placement.gpu_lists[rank];
  }
  process->binding = NumberList({processors.begin(), processors.end()});
  process->env[contract::kLocalProcessors] = std::to_string(placement.processor_count);
  if (placement.gpu_lists.empty()) gpus = placement.gpus_given;
  if (!placement.gpu_variable.empty()) process->env[placement.gpu_variable] = gpus;
}

}  // namespace dtrun::plan
