#include "core/plan/vendor.h"

#include <fmt/format.h>

#include "core/net/variables.h"

namespace dtrun::plan {
namespace {

using Variables = std::map<std::string, std::string>;

const std::string* Find(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : &found->second;
}

// A choice of the user's, and the variable that it stands against.
struct Override {
  std::string text;  // for the note
  std::string value;
  std::string instead;  // what dtrun would set
};

const std::string* OwnValue(const VendorInputs& inputs, const std::string& name) {
  const std::string* const own = Find(inputs.user, name);
  return own != nullptr ? own : Find(inputs.inherited, name);
}

}  // namespace

std::vector<Variables> VendorEnvironments(const VendorInputs& inputs, std::size_t host_count,
                                          std::vector<std::string>* notes) {
  const Variables backend(inputs.backend.begin(), inputs.backend.end());
  const std::vector<net::Network> networks =
      inputs.network == nullptr ? std::vector<net::Network>() : net::NetworksOf(*inputs.network);
  std::vector<Variables> out;
  std::map<std::string, Override> kept;  // by the variable that the user has set
  for (std::size_t host = 0; host < host_count; ++host) {
    const Variables network = networks.empty() ? Variables() : net::Variables(networks[host]);
    Variables ours = backend;
    ours.insert(network.begin(), network.end());
    std::erase_if(ours, [&](const auto& variable) {
      const auto& [name, value] = variable;
      const std::string* const proven = Find(network, name);
      if (const std::string* const own = OwnValue(inputs, name)) {
        // A backend that repeats it does not make it ours.
        const std::string& instead = *own == value && proven != nullptr ? *proven : value;
        if (*own != instead) kept.try_emplace(name, Override{name + "=" + *own + " is yours", *own, instead});
        return true;
      }
      const std::string opposite = net::Opposite(name);
      if (const std::string* const own = opposite.empty() ? nullptr : OwnValue(inputs, opposite)) {
        kept.try_emplace(opposite, Override{opposite + "=" + *own + " is yours", *own,
                                            fmt::format("{}={}, which cannot stand beside it", name, value)});
        return true;
      }
      if (proven != nullptr && value != *proven) {
        kept.try_emplace(
            name, Override{fmt::format("{}={} is what backend.options say", name, value), value, *proven});
      }
      return false;
    });
    out.push_back(std::move(ours));
  }
  for (const auto& [name, choice] : kept) {
    const std::string wrong =
        inputs.network == nullptr ? "" : net::CheckOwnValue(name, choice.value, *inputs.network);
    notes->push_back(fmt::format("{} and is kept; dtrun would set {}{}", choice.text, choice.instead,
                                 wrong.empty() ? "" : "; " + wrong));
  }
  return out;
}

}  // namespace dtrun::plan
