// Turns a command line into a plan: config, plugins, probe of the backend.
//
// Shared by the verbs that read a config. Main thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/hosts/launchers.h"
#include "core/job/planner.h"
#include "core/launch/environment.h"
#include "core/plan/build.h"
#include "core/plugin/plugin.h"
#include "core/preflight/routes.h"
#include "core/spec/backend_choice.h"
#include "core/spec/read.h"

namespace dtrun::launch {

class LauncherPlugins;  // core/launch/launchers.h

// The config and its plugins, after each plugin was found and a child process has read its options.
class Preparation final : public job::Planner {
 public:
  // `problems` has the findings of Load and WrongValues; if it is empty, the config is usable.
  // `request` may omit the environment and the existing backends.
  static Preparation Load(spec::Request request, std::vector<std::string> plugin_dirs = {});

  const spec::JobSpec& spec() const { return loaded_.spec; }
  const std::vector<spec::Problem>& problems() const { return loaded_.problems; }

  // The plan for this host alone; the first call queries the backend for what it would use here. REQUIRES: no
  // problems.
  Result<plan::Plan> MakePlan();

  // The initial plan of a run. For a job on several hosts it is a draft, and the backends have not been
  // queried: this host need not be one of them. REQUIRES: no problems.
  Result<plan::Plan> PlanOfRun();
  Result<plan::Plan> PlanFor(const std::vector<plan::HostOffer>& offers,
                             const std::vector<preflight::Answer>& answers,
                             const network::Decision* network) override;
  // REQUIRES: a plan was made
  Result<std::vector<preflight::Request>> PreflightRequests(
      const std::vector<plan::HostOffer>& offers) const override;

  // What ranks run. REQUIRES: a plan was made, or Check.
  const std::string& program() const { return program_; }

  // The checks that a run does before it queries other hosts or backends, except for the program, which other
  // hosts may have although this one does not. REQUIRES: no problems.
  Status Check();

  // Adds these lines to the warnings of each plan.
  void Warn(std::vector<std::string> lines) { warnings_ = std::move(lines); }

  // Waits until the plugin processes used for planning have ended, so that none runs beside the
  // ranks.
  void AwaitProbes() { ending_.clear(); }

  // The launcher plugins, for connecting to hosts.
  std::shared_ptr<hosts::Launchers> launchers();

  // The backends in backend.name with their options, for a job of that size; then those that may join the
  // ranks beside them, once Check or a plan has found them. REQUIRES: no problems.
  std::vector<preflight::BackendRequest> BackendRequests(int host_count, int world_size) const;

  // Names in a list for which there is no plugin here: they are skipped, and may be typos.
  std::vector<preflight::Check> UnknownBackends() const;

  // Which backend shall move which memory, given the answers to these requests. REQUIRES: no
  // problems.
  preflight::RouteWish Wish() const;

 private:
  // One of the names in backend.name, or a backend that joins them.
  struct Candidate {
    std::string name;
    spec::PluginOptions options = {};
    std::optional<plugin::File> file = {};           // unset for "none", and if not available
    std::unique_ptr<plugin::Probe> probe = nullptr;  // has described it; until the first plan
    std::string why_not = {};                        // why it cannot be used here
    std::optional<plan::Backend> answer = {};        // set after the query
  };
  // Indices into the candidates.
  struct Chosen {
    std::size_t host = 0;
    std::optional<std::size_t> device = {};  // may equal `host`
    std::string no_device = {};              // why there is no `device`
    bool asked = true;                       // false: a draft that uses the first for host memory
  };

  Status FindWrapped(spec::PluginOptions* wrapper) const;
  Result<plugin::File> FileOf(plugin::Kind kind, const std::string& name, bool named,
                              const spec::JobSpec& so_far) const;
  Result<options::Schema> SchemaOfLauncher(const std::string& name, const spec::JobSpec& so_far);
  Result<options::Schema> SchemaOfBackend(const std::string& name, const spec::JobSpec& so_far);
  std::unique_ptr<plugin::Probe> BeginBackend(const spec::JobSpec& so_far) const;
  Result<std::unique_ptr<plugin::Probe>> Described(const plugin::File& backend);
  void End(std::unique_ptr<plugin::Probe> probe);
  // preparation_backends.cc
  bool MayNeedUnnamed();
  Status AddUnnamed();
  static plan::Backend AnswerOf(const Candidate& candidate);
  Result<plugin::LaunchInfo> AskForInfo(Candidate& candidate, const std::vector<plan::Host>& hosts);
  Status Ask(Candidate& candidate);
  bool MayUseDevices() const;
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

  // The plugin folders, by plugins.path as read so far.
  std::vector<plugin::Folder> FoldersOf(const spec::JobSpec& so_far) const;
  std::shared_ptr<LauncherPlugins> LaunchersFor(const spec::JobSpec& so_far,
                                                const spec::OptionsReader& options);

  std::vector<std::string> plugin_dirs_;
  std::shared_ptr<LauncherPlugins> launchers_;  // created on first use
  spec::Loaded loaded_;
  bool joins_ = false;  // backends are being added beside those of backend.name
  spec::BackendChoice choice_;
  std::vector<Candidate> candidates_;  // in order of preference; unnamed ones last
  std::string passed_over_;            // why each backend before the chosen host backend was rejected
  std::optional<Result<plan::HostOffer>> here_;  // read while plugins load
  std::optional<plan::Hardware> hardware_;       // of this host, after it was read
  plugin::File launcher_file_;
  std::unique_ptr<plugin::Probe> early_;                // of a backend that is still loading
  std::unique_ptr<plugin::Probe> launcher_;             // has described it; until the first plan
  std::vector<std::unique_ptr<plugin::Probe>> ending_;  // not yet waited for
  std::string program_;                                 // run by ranks
  std::vector<std::string> warnings_;                   // from Warn
};

// The JobSpec of a job with this backend and default options.
Result<spec::JobSpec> DefaultsOf(const plugin::File& backend, std::vector<std::string> plugin_dirs,
                                 std::vector<std::string> sets = {});

// The path of dtrun on the other hosts: cluster.dtrun, or that of this process.
Result<std::string> DtrunOnHosts(const spec::JobSpec& spec);

}  // namespace dtrun::launch
