#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/environments/libraries.h"
#include "core/plan/steps.h"

namespace dtrun::plan {
namespace {

using Variables = std::map<std::string, std::string>;

const std::string* Find(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : &found->second;
}

// A feature that one rank must not use is disabled for the whole job: returns the variables and the values
// that disable it, as the backend declares them on any host.
Variables AgreedIn(const std::vector<Host>& hosts) {
  Variables agreed;
  for (const Host& host : hosts) {
    for (const auto* facts : {&host.device_facts, &host.backend_facts}) {
      for (const auto& [key, value] : *facts) {
        if (key.starts_with(kAgreeFact)) agreed.emplace(key.substr(std::size(kAgreeFact) - 1), value);
      }
    }
  }
  return agreed;
}

// A choice of the user, and the variable that it overrides.
struct Override {
  std::string by;                    // the chooser: "is yours"
  std::vector<std::string> values;   // by host
  std::vector<std::string> instead;  // dtrun's own value, by host
};

const std::string* OwnValue(const VendorInputs& inputs, const std::string& name) {
  const std::string* const own = Find(inputs.user, name);
  return own != nullptr ? own : Find(inputs.inherited, name);
}

// The backend's variables by host; those that must agree have the same value on all hosts.
std::vector<Variables> Agreed(const VendorInputs& inputs, std::vector<std::string>* notes) {
  std::vector<Variables> out = inputs.backend;
  for (const auto& [name, without] : AgreedIn(inputs.hosts)) {
    std::vector<std::string> from;  // hosts on which the feature is disabled
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::string* const value = Find(out[i], name);
      if (value != nullptr && *value == without) from.push_back(inputs.hosts[i].name);
    }
    if (from.empty() || from.size() == out.size() || OwnValue(inputs, name) != nullptr) continue;
    for (Variables& host : out) host[name] = without;
    notes->push_back(fmt::format("{}={} on all hosts, because {} and ranks must agree", name, without,
                                 from.size() == 1   ? from.front() + " needs it"
                                 : from.size() <= 4 ? fmt::format("{} need it", fmt::join(from, ", "))
                                                    : fmt::format("{} hosts need it", from.size())));
  }
  return out;
}

}  // namespace

std::vector<Variables> VendorEnvironments(const VendorInputs& inputs, std::vector<std::string>* notes) {
  const std::vector<network::Network> networks =
      inputs.network == nullptr ? std::vector<network::Network>() : network::NetworksOf(*inputs.network);
  const std::vector<Variables> backend = Agreed(inputs, notes);
  std::vector<Variables> out;
  std::map<std::string, Override> kept;  // by variable
  const auto keep = [&](std::size_t host, const std::string& name, const std::string& by,
                        const std::string& value, const std::string& instead) {
    const std::vector<std::string> none(backend.size());
    Override& choice = kept.try_emplace(name, Override{by, none, none}).first->second;
    choice.values[host] = value;
    choice.instead[host] = instead;
  };
  for (std::size_t host = 0; host < backend.size(); ++host) {
    const Variables network =
        networks.empty() ? Variables() : environments::InterfaceVariables(networks, host);
    Variables ours = backend[host];
    ours.insert(network.begin(), network.end());
    std::erase_if(ours, [&](const auto& variable) {
      const auto& [name, value] = variable;
      const std::string* const checked = Find(network, name);
      if (const std::string* const own = OwnValue(inputs, name)) {
        // A value that the backend repeats is still the user's.
        const std::string& instead = *own == value && checked != nullptr ? *checked : value;
        if (*own != instead) keep(host, name, "is yours", *own, instead);
        return true;
      }
      const std::string opposite = environments::Opposite(name);
      if (const std::string* const own = opposite.empty() ? nullptr : OwnValue(inputs, opposite)) {
        keep(host, opposite, "is yours", *own, fmt::format("{}={}, which conflicts with it", name, value));
        return true;
      }
      if (checked != nullptr && value != *checked)
        keep(host, name, "is what backend.options say", value, *checked);
      return false;
    });
    out.push_back(std::move(ours));
  }
  for (const auto& [name, choice] : kept) {
    const std::string wrong =
        inputs.network == nullptr ? "" : environments::CheckInterfaces(name, choice.values, *inputs.network);
    std::vector<std::string> spec;
    for (const std::string& value : choice.values)
      spec.push_back(value.empty() ? "" : fmt::format("{}={}", name, value));
    notes->push_back(fmt::format("{} {} and is kept; dtrun would set {}{}", TellByHost(inputs.hosts, spec),
                                 choice.by, TellByHost(inputs.hosts, choice.instead),
                                 wrong.empty() ? "" : "; " + wrong));
  }
  return out;
}

}  // namespace dtrun::plan
