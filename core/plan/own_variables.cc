#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/number.h"
#include "core/base/text.h"
#include "core/contract/environment.h"
#include "core/log/log.h"
#include "core/plan/steps.h"

namespace dtrun::plan {
namespace {

constexpr std::string_view kPrefix = "DTRUN_", kOfOptions = "DTRUN_CONFIG_";
constexpr std::string_view kRead[] = {"DTRUN_LOG", "DTRUN_LOG_FORMAT", "DTRUN_PLUGIN_PATH",
                                      "DTRUN_CLUSTER_KEY", "DTRUN_LIBRARY"};
bool IsIn(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

std::string Advice(const std::string& name, const std::vector<std::string>& options) {
  std::vector<std::string> candidates(std::begin(kRead), std::end(kRead));
  candidates.insert(candidates.end(), options.begin(), options.end());
  std::optional<std::string> meant;
  const std::string as_option = std::string(kOfOptions) + name.substr(kPrefix.size());
  if (std::ranges::find(options, as_option) != options.end()) meant = as_option;
  if (!meant) meant = Nearest(name, candidates);
  if (meant) return fmt::format("did you mean {}?", *meant);
  return "an option is set by DTRUN_CONFIG_ and its key, as in DTRUN_CONFIG_JOB_GRACE";
}

const char* ValueOf(const environments::Variables& environment, const std::string& name) {
  const auto one = environment.find(name);
  return one == environment.end() ? nullptr : one->second.c_str();
}

}  // namespace

std::vector<std::string> IgnoredVariables(const environments::Variables& environment,
                                          const std::vector<std::string>& options,
                                          const std::vector<std::string>& plugins) {
  std::vector<std::string> notes;
  for (const std::string& wrong : log::WrongVariables(ValueOf(environment, "DTRUN_LOG"),
                                                      ValueOf(environment, "DTRUN_LOG_FORMAT"), plugins))
    notes.push_back(wrong);
  const bool in_a_rank = environment.contains(contract::kJobKey);  // this dtrun was started by a rank
  for (auto one = environment.lower_bound(std::string(kPrefix));
       one != environment.end() && one->first.starts_with(kPrefix); ++one) {
    const std::string& name = one->first;
    if (name.starts_with(kOfOptions) || IsIn(name, kRead)) continue;
    if (!IsIn(name, contract::kVariablesOfRanks)) {
      notes.push_back(
          fmt::format("{} is ignored: dtrun reads no such variable; {}", name, Advice(name, options)));
    } else if (!in_a_rank) {
      notes.push_back(fmt::format("{} is ignored: dtrun sets it for each rank", name));
    }
  }
  return notes;
}

std::string UnusedDistribution(const environments::Variables& environment, const std::vector<int>& ranks) {
  const auto given = environment.find("SLURM_DISTRIBUTION");
  if (given == environment.end() || ranks.size() < 2) return {};
  const std::string order = given->second.substr(0, given->second.find_first_of(":,"));
  int in_turn = 1;  // ranks per host before the next host gets some
  if (order == "plane") {
    const auto size = environment.find("SLURM_DIST_PLANESIZE");
    if (size != environment.end()) in_turn = NumberOf<int>(size->second).value_or(1);
  } else if (order != "cyclic") {
    return {};
  }
  if (std::ranges::none_of(ranks, [&](int one) { return one > in_turn; })) return {};
  return fmt::format(
      "SLURM_DISTRIBUTION={} is ignored: dtrun fills each host before the next, where srun would deal the "
      "ranks "
      "out; to keep srun's order start the program with srun, or unset SLURM_DISTRIBUTION",
      given->second);
}

std::string UnusedMasterPort(const environments::Variables& environment,
                             const environments::Variables& user) {
  const auto port = environment.find("MASTER_PORT");
  if (port == environment.end() || user.contains("MASTER_PORT")) return {};
  for (const std::string_view outer : {std::string_view(contract::kJobKey), std::string_view("RANK")}) {
    if (environment.contains(std::string(outer))) return {};
  }
  const auto number = NumberOf<int>(port->second);
  if (!number || *number < 1 || *number > 65535) {
    return fmt::format(
        "MASTER_PORT={} is not used, and rank 0 gets a free port: it is not a port from 1 to 65535; unset it",
        port->second);
  }
  return fmt::format(
      "MASTER_PORT={0} is not used, and rank 0 gets a free port; to keep it, export "
      "DTRUN_CONFIG_JOB_MASTER_PORT={0} in its place",
      port->second);
}

}  // namespace dtrun::plan
