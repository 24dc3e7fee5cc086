#include "core/plan/network.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/network/rule.h"
#include "core/network/weakness.h"
#include "core/options/snapshot.h"
#include "core/plan/at.h"

namespace dtrun::plan {
namespace {

constexpr char kAuto[] = "auto";
constexpr char kOff[] = "off";

std::string PlaceOf(const spec::AnyField& field) {
  const std::string& place = field.place();
  return place.ends_with(field.key()) ? place : place + (place.empty() ? "" : ": ") + field.key();
}

Error UnknownHost(const spec::JobSpec& spec, const std::string& name, const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.name);
  const auto nearest = Nearest(name, names);
  return At(spec.network.interface_on, "'{}' is not a host of this job, which has {}{}", name,
            fmt::join(names, ", "), nearest ? fmt::format("; did you mean '{}'?", *nearest) : "");
}

}  // namespace

Status CheckRules(const spec::JobSpec& spec) {
  const std::string& text = *spec.network.interface;
  if (const auto rule = network::Rule::Parse(text); text != kOff && !rule)
    return At(spec.network.interface, rule.error());
  if (!spec.network.interface_on.has()) return {};
  for (const auto& [name, own] : *spec.network.interface_on) {
    if (const auto rule = network::Rule::Parse(own); !rule)
      return At(spec.network.interface_on, rule.error());
  }
  return {};
}

Result<std::vector<NetworkRule>> NetworkRules(const spec::JobSpec& spec, const std::vector<Host>& hosts) {
  const std::string& text = *spec.network.interface;
  const bool off = text == kOff;
  std::vector<NetworkRule> rules;
  if (Status legal = CheckRules(spec); !legal) return legal.error();
  if (!off) rules.assign(hosts.size(), {text, PlaceOf(spec.network.interface)});
  const bool per_host = spec.network.interface_on.has();
  if (per_host) {
    for (const auto& [name, own] : *spec.network.interface_on) {
      const auto host = std::ranges::find(hosts, name, &Host::name);
      if (host == hosts.end()) return UnknownHost(spec, name, hosts);
      if (off) {
        return At(spec.network.interface_on,
                  {DTRUN_INVALID_ARGUMENT,
                   "network.interface = \"off\" leaves nothing to choose; leave one of them out"});
      }
      rules[static_cast<std::size_t>(host - hosts.begin())] = {own, PlaceOf(spec.network.interface_on)};
    }
  }
  if (hosts.size() == 1 && text == kAuto && !per_host) rules.clear();
  return rules;
}

std::string UnusedInterface(const spec::JobSpec& spec) {
  const std::string& text = *spec.network.interface;
  const bool asked = text != kAuto && text != kOff;
  if (!asked && !spec.network.interface_on.has()) return {};
  return fmt::format(
      "{} has no effect: the job is on one host; backend.options.interface chooses the backend's there",
      asked ? PlaceOf(spec.network.interface) : PlaceOf(spec.network.interface_on));
}

void AddNetwork(const network::Decision& decision, Plan* plan) {
  const std::vector<network::Network> networks = network::NetworksOf(decision);
  for (std::size_t i = 0; i < plan->hosts.size(); ++i) plan->hosts[i].address = networks[i].address;
  plan->network = network::Summary(decision);
  plan->network_others = network::OthersText(decision);
  for (const network::Weakness& one : network::WeaknessesOf(decision, decision.chosen))
    plan->warnings.push_back(fmt::format("{}; {}", one.what, one.fix));
  for (std::size_t i = 0; options::LowestOf(plan->backend) == "ucx" && i < networks.size(); ++i) {
    const network::Network& one = networks[i];
    if (one.named || !one.rdma.empty()) continue;
    plan->warnings.push_back(fmt::format(
        "UCX uses the first address of an interface, and {} is not the first of {} on {}; make it the "
        "first one there, or set backend.name = \"gloo\"",
        one.address, one.interface, plan->hosts[i].name));
    break;
  }
  plan->record["network.txt"] = network::Table(decision);
  plan->record["network.json"] = network::ToJson(decision);
}

}  // namespace dtrun::plan
