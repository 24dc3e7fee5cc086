// From a command line to a plan: config, plugins, probe of the backend.
//
// Shared by the verbs that read a config. Main thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/backend_choice.h"
#include "core/config/settings.h"
#include "core/hosts/launchers.h"
#include "core/job/planner.h"
#include "core/launch/environment.h"
#include "core/plan/build.h"
#include "core/plugin/plugin.h"
#include "core/preflight/routes.h"

namespace dtrun::launch {

class LauncherPlugins;  // core/launch/launchers.h

// The config with the plugins that it names: found, and asked for their options, each in a child process.
class Preparation final : public job::Planner {
 public:
  // `problems` is what Load and WrongValues report; an empty list means that the config is usable.
  // `request` needs neither an environment nor the backends that exist.
  static Preparation Load(config::Request request, std::vector<std::string> plugin_dirs = {});

  const config::Settings& settings() const { return loaded_.settings; }
  const std::vector<config::Problem>& problems() const { return loaded_.problems; }

  // The plan as this host alone can make it: it asks the backend, the first time, what it would use here.
  // REQUIRES: no problems.
  Result<plan::Plan> MakePlan();

  // The plan with which a run begins. Of a job on several hosts it is a draft whose backend nobody was asked
  // about: this host need not be one of them. REQUIRES: no problems.
  Result<plan::Plan> PlanOfRun();
  Result<plan::Plan> PlanFor(const std::vector<plan::HostOffer>& offers,
                             const std::vector<preflight::Answer>& answers,
                             const network::Decision* network) override;
  // REQUIRES: a plan was made
  Result<std::vector<preflight::Request>> PreflightRequests(
      const std::vector<plan::HostOffer>& offers) const override;

  // Of python.modules and backend.torch, asked of the program that ranks run. REQUIRES: a plan was made, or
  // Check.
  Result<preflight::ModuleRequest> ModulesToAsk() const;

  // What a run would refuse before it asks other hosts or backends, but for the program, which a host may
  // have and this one not. REQUIRES: no problems.
  Status Check();

  // Lines for the warnings of each plan.
  void Warn(std::vector<std::string> lines) { warnings_ = std::move(lines); }

  // Waits for the plugins' processes that planning has used, so that none is beside the ranks.
  void AwaitProbes() { ending_.clear(); }

  // The launcher plugins, for those who connect to hosts.
  std::shared_ptr<hosts::Launchers> launchers() const;

  // The backends that backend.name gives, with their options, for a job of that size; then those that may
  // join the ranks beside them, once Check or a plan has found them. REQUIRES: no problems.
  std::vector<preflight::BackendRequest> BackendRequests(int host_count, int world_size) const;

  // Of a list, the names that no plugin here has: they are passed over, and may be mistyped.
  std::vector<preflight::Check> UnknownBackends() const;

  // What carries which memory, by answers to these requests. REQUIRES: no problems.
  preflight::RouteWish Wish() const;

 private:
  // One of the names in backend.name, with its own reading of the config.
  struct Candidate {
    std::string name;
    config::Settings settings;
    std::optional<plugin::File> file;      // unset for "none", and when it could not be had
    std::unique_ptr<plugin::Probe> probe;  // that has described it; until the first plan
    std::string why_not;                   // it cannot be used here
    std::optional<plan::Backend> answer;   // once asked
  };
  // Places in the candidates.
  struct Chosen {
    std::size_t host = 0;
    std::optional<std::size_t> device = {};  // the host's may be it too
    std::string no_device = {};              // why there is none
    bool asked = true;                       // false: a draft, with the first for the host's memory
  };

  Result<options::Schema> SchemaOf(std::string_view kind, const std::string& name,
                                   const config::Settings& so_far);
  static std::unique_ptr<plugin::Probe> BeginBackend(const config::Settings& so_far,
                                                     const std::vector<plugin::Folder>& folders);
  Result<std::unique_ptr<plugin::Probe>> Described(const plugin::File& backend);
  void End(std::unique_ptr<plugin::Probe> probe);
  void AddProblems(std::vector<config::Problem> found);
  void AddCandidate(config::Settings settings, std::string name);
  config::Loaded ReadConfig();
  // preparation_backends.cc
  bool MayNeedUnnamed();
  Status AddUnnamed();
  static plan::Backend AnswerOf(const Candidate& candidate);
  Result<plugin::LaunchInfo> AskForInfo(Candidate& candidate, const std::vector<plan::Host>& hosts);
  Status Ask(Candidate& candidate);
  bool MayUseDevices() const;
  // preparation_modules.cc
  Status CheckModules(const std::string& host, const std::string& missing) const;
  Status CheckModulesHere() const;
  Result<preflight::Answer> AskHere();
  Result<Chosen> ChooseHere();
  Result<Chosen> ChooseByAll(const std::vector<plan::Hardware>& reported,
                             const std::vector<preflight::Answer>& answers);
  plan::DeviceMemory DeviceMemoryOf(const Chosen& chosen, std::size_t hosts) const;
  Result<plan::Plan> PlanByAnswers(const std::vector<plan::HostOffer>& offers,
                                   const std::vector<preflight::Answer>& answers,
                                   const network::Decision* network);
  Status ReadHardware();
  std::vector<plan::Hardware> HardwareOf(const std::vector<plan::HostOffer>& offers) const;
  Result<plan::Plan> Build(const Chosen& chosen, std::vector<plan::Hardware> reported,
                           const network::Decision* network, bool find_programs = true);

  // Where plugins are, by what plugins.path says so far.
  std::vector<plugin::Folder> FoldersOf(const config::Settings& so_far) const;
  void SetOptions(const config::Settings& so_far, LauncherPlugins* launchers) const;
  std::shared_ptr<LauncherPlugins> LaunchersFor(const config::Settings& so_far);

  std::vector<std::string> plugin_dirs_;
  config::Request request_;                     // of the last reading
  std::shared_ptr<LauncherPlugins> launchers_;  // once somebody has asked for them
  config::Loaded loaded_;
  std::unique_ptr<plugin::Probe> probe_;  // of the backend whose options were read last
  std::string probe_failure_;             // or why there is none
  config::BackendChoice choice_;
  std::vector<Candidate> candidates_;            // in order of preference; those without a name last
  std::string passed_over_;                      // why each one before the host's is not it
  std::optional<Result<plan::HostOffer>> here_;  // read while plugins load
  std::optional<plan::Hardware> hardware_;       // of this host, once read
  plugin::File launcher_file_;
  std::unique_ptr<plugin::Probe> early_;                // of a backend that nobody has heard yet
  std::unique_ptr<plugin::Probe> launcher_;             // that has described it; until the first plan
  std::vector<std::unique_ptr<plugin::Probe>> ending_;  // which nobody has waited for
  std::string program_;                                 // that ranks run
  std::vector<std::string> warnings_;                   // of Warn
};

// The settings of a job with that backend and all its options as they are by default.
Result<config::Settings> DefaultsOf(const plugin::File& backend, std::vector<std::string> plugin_dirs);

// The path of dtrun on the other hosts: cluster.dtrun, or that of this process.
Result<std::string> DtrunOnHosts(const config::Settings& settings);

}  // namespace dtrun::launch
