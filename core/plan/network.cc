#include "core/plan/network.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/suggest.h"
#include "core/network/rule.h"
#include "core/network/weakness.h"
#include "core/plan/at.h"

namespace dtrun::plan {
namespace {

constexpr char kInterface[] = "network.interface";
constexpr char kInterfaceOn[] = "network.interface_on";
constexpr char kAuto[] = "auto";
constexpr char kOff[] = "off";

std::string PlaceOf(const config::Settings& settings, const char* key) {
  const std::string& place = settings.Get(key).origin.place;
  return place.ends_with(key) ? place : place + (place.empty() ? "" : ": ") + key;
}

Error UnknownHost(const config::Settings& settings, const std::string& name, const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  std::string list;
  for (const Host& host : hosts) {
    names.push_back(host.name);
    list += (list.empty() ? "" : ", ") + host.name;
  }
  const auto nearest = Nearest(name, names);
  return At(
      settings, kInterfaceOn,
      {DTRUN_INVALID_ARGUMENT, fmt::format("'{}' is not a host of this job, which has {}{}", name, list,
                                           nearest ? fmt::format("; did you mean '{}'?", *nearest) : "")});
}

}  // namespace

Status CheckRules(const config::Settings& settings) {
  const std::string& text = settings.Text(kInterface);
  if (const auto rule = network::Rule::Parse(text); text != kOff && !rule)
    return At(settings, kInterface, rule.error());
  if (!settings.Has(kInterfaceOn)) return {};
  for (const auto& [name, own] : settings.Map(kInterfaceOn)) {
    if (const auto rule = network::Rule::Parse(own); !rule) return At(settings, kInterfaceOn, rule.error());
  }
  return {};
}

Result<std::vector<NetworkRule>> NetworkRules(const config::Settings& settings,
                                              const std::vector<Host>& hosts) {
  const std::string& text = settings.Text(kInterface);
  const bool off = text == kOff;
  std::vector<NetworkRule> rules;
  if (Status legal = CheckRules(settings); !legal) return legal.error();
  if (!off) rules.assign(hosts.size(), {text, PlaceOf(settings, kInterface)});
  const bool per_host = settings.Has(kInterfaceOn);
  if (per_host) {
    for (const auto& [name, own] : settings.Map(kInterfaceOn)) {
      const auto host = std::ranges::find(hosts, name, &Host::name);
      if (host == hosts.end()) return UnknownHost(settings, name, hosts);
      if (off) {
        return At(settings, kInterfaceOn,
                  {DTRUN_INVALID_ARGUMENT,
                   "network.interface = \"off\" leaves nothing to choose; leave one of them out"});
      }
      rules[static_cast<std::size_t>(host - hosts.begin())] = {own, PlaceOf(settings, kInterfaceOn)};
    }
  }
  if (hosts.size() == 1 && text == kAuto && !per_host) rules.clear();
  return rules;
}

std::string UnusedInterface(const config::Settings& settings) {
  const std::string& text = settings.Text(kInterface);
  const bool asked = text != kAuto && text != kOff;
  if (!asked && !settings.Has(kInterfaceOn)) return {};
  return fmt::format(
      "{} has no effect: the job is on one host; backend.options.interface chooses the backend's there",
      PlaceOf(settings, asked ? kInterface : kInterfaceOn));
}

void AddNetwork(const network::Decision& decision, Plan* plan) {
  const std::vector<network::Network> networks = network::NetworksOf(decision);
  for (std::size_t i = 0; i < plan->hosts.size(); ++i) plan->hosts[i].address = networks[i].address;
  plan->network = network::Summary(decision);
  plan->network_others = network::OthersText(decision);
  for (const network::Weakness& one : network::WeaknessesOf(decision, decision.chosen))
    plan->warnings.push_back(fmt::format("{}; {}", one.what, one.fix));
  for (std::size_t i = 0; plan->backend == "ucx" && i < networks.size(); ++i) {
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
