#include "core/launch/launchers.h"

#include <algorithm>
#include <utility>

#include "core/launch/cluster_key.h"
#include "core/launch/environment.h"
#include "core/options/snapshot.h"
#include "core/plugin/search_path.h"

namespace dtrun::launch {
namespace {

constexpr std::string_view kOptions = "launcher.options.";

bool Can(const plugin::Description& launcher, hosts::Launchers::Ability ability) {
  const char* const member = ability == hosts::Launchers::Ability::kFindHosts ? "find_hosts" : "connect";
  return std::ranges::find(launcher.members, member) != launcher.members.end();
}

}  // namespace

// Load all in parallel. A launcher that cannot be loaded is an error only if the user names it.
std::vector<std::string> LauncherPlugins::With(Ability ability) {
  std::vector<std::unique_ptr<plugin::Probe>> loading;
  for (const plugin::File& file : plugin::FindAll(folders_)) {
    if (file.kind != plugin::Kind::kLauncher || known_.contains(plugin::TypedForm(file.name))) continue;
    const auto checked = plugin::Find(file.kind, file.name, folders_);
    auto probe = checked ? plugin::Probe::Begin(*checked) : checked.error();
    if (probe) loading.push_back(*std::move(probe));
  }
  for (auto& probe : loading) {
    if (!probe->Describe()) continue;
    const plugin::Description& description = probe->description();
    known_[plugin::TypedForm(description.file.name)] = {description, std::move(probe), {}};
  }
  std::vector<std::string> names;
  for (const auto& [name, launcher] : known_) {
    if (Can(launcher.description, ability)) names.push_back(name);
  }
  return names;
}

Result<LauncherPlugins::Known*> LauncherPlugins::Describe(const std::string& name) {
  if (const auto found = known_.find(name); found != known_.end()) return &found->second;
  const auto file = plugin::Find(plugin::Kind::kLauncher, name, folders_);
  if (!file) return file.error();
  // Use the path for a file: another one of that name may be on the search path.
  const std::string key =
      name.find('/') == std::string::npos ? plugin::TypedForm(file->name) : file->path.string();
  if (const auto found = known_.find(key); found != known_.end()) return &found->second;
  auto probe = plugin::Probe::Start(*file);
  if (!probe) return probe.error();
  Known launcher{(*probe)->description(), *std::move(probe), {}};
  return &known_.emplace(key, std::move(launcher)).first->second;
}

Result<bool> LauncherPlugins::Has(const std::string& name, Ability ability) {
  const auto launcher = Describe(name);
  if (launcher) return Can((*launcher)->description, ability);
  const dtrun_status code = launcher.error().code;
  if (code == DTRUN_NOT_FOUND || code == DTRUN_INVALID_ARGUMENT) return false;  // not a launcher
  return launcher.error();
}

Result<dtrun_options> LauncherPlugins::OptionsOf(const plugin::Description& launcher) const {
  if (launcher.file.path == chosen_) return options_;
  if (read_) {
    const spec::PluginRead read = read_("launcher", plugin::TypedForm(launcher.file.name), launcher.options);
    if (read.problems.empty()) return read.options.Snapshot();
    const spec::Problem& first = read.problems.front();
    return Error::Of(DTRUN_INVALID_ARGUMENT, "{}: {}{}", first.place, first.message,
                     first.hint.empty() ? "" : "; " + first.hint);
  }
  return options::DefaultsOf(launcher.options, kOptions);
}

Result<std::unique_ptr<plugin::Probe>> LauncherPlugins::ProbeOf(Known& launcher) {
  if (launcher.probe != nullptr) return std::move(launcher.probe);
  return plugin::Probe::Start(launcher.description.file);
}

Result<hosts::Allocation> LauncherPlugins::FindHosts(const std::string& name,
                                                     const hosts::Environment& environment) {
  const auto launcher = Describe(name);
  if (!launcher) return launcher.error();
  std::optional<Result<hosts::Allocation>>& found = (*launcher)->found;
  if (!found) found = AskHosts(**launcher, name, environment);
  return *found;
}

Result<hosts::Allocation> LauncherPlugins::AskHosts(Known& launcher, const std::string& name,
                                                    const hosts::Environment& environment) {
  const auto options = OptionsOf(launcher.description);
  if (!options) return options.error();
  const auto probe = ProbeOf(launcher);
  if (!probe) return probe.error();
  hosts::Environment shared = environment;
  shared.erase(kClusterKey);
  auto allocation = (*probe)->FindHosts(*options, shared);
  if (!allocation) return allocation;
  allocation->platform = name;
  if (Can(launcher.description, Ability::kConnect)) allocation->connect = name;
  return allocation;
}

Result<std::vector<hosts::StartCommand>> LauncherPlugins::Connect(const std::string& name,
                                                                  const std::vector<std::string>& hosts,
                                                                  const std::vector<std::string>& argv) {
  const auto launcher = Describe(name);
  if (!launcher) return launcher.error();
  const auto options = OptionsOf((*launcher)->description);
  if (!options) return options.error();
  const auto probe = ProbeOf(**launcher);
  if (!probe) return probe.error();
  return (*probe)->Connect(*options, {hosts, argv, RankEnvironment()});
}

void LauncherPlugins::EndProbes() {
  for (auto& [name, launcher] : known_) launcher.probe.reset();
}

}  // namespace dtrun::launch
