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

#include "core/config/settings.h"
#include "core/plan/build.h"
#include "core/plugin/plugin.h"

namespace dtrun::cli {

// The variable with the key of a cluster whose hosts are started by somebody else. No rank sees it.
inline constexpr char kClusterKey[] = "DTRUN_CLUSTER_KEY";

// Options that every verb with a config has.
struct ConfigArguments {
  std::string file;
  std::string host_index;  // as cluster.host_index; empty: not given
  std::vector<std::string> sets;
  std::vector<std::string> plugin_dirs;
  std::vector<std::string> command;  // after "--"
  std::vector<config::Given> base;   // of verbs with a spelling of their own
  std::vector<config::Given> given;
};

// The config with the plugins that it names: found, and asked for their options. The
// launching process loads launchers only; a backend is asked in a child process.
class Preparation {
 public:
  // `problems` is what Load reports; an empty list means that the config is usable.
  static Preparation Load(const ConfigArguments& arguments);

  const config::Settings& settings() const { return loaded_.settings; }
  const std::vector<config::Problem>& problems() const { return loaded_.problems; }

  // Asks the backend what it would use here, the first time, and builds the plan. `offers`: of
  // hosts that have reported theirs; `network`: once it is proven. REQUIRES: no problems.
  Result<plan::Plan> MakePlan(const std::vector<plan::HostOffer>& offers = {},
                              const net::Decision* network = nullptr);

 private:
  Result<option::Schema> SchemaOf(std::string_view kind, const std::string& name,
                                  const config::Settings& so_far);
  Status AskBackend(const std::vector<plan::Hardware>& reported);

  ConfigArguments arguments_;
  config::Loaded loaded_;
  std::unique_ptr<plugin::Probe> backend_;
  std::optional<plan::Hardware> hardware_;  // of this host, once read
  plan::Backend answer_;                    // of the backend, once asked
  const plugin::Plugin* launcher_ = nullptr;
};

// The path of dtrun on the other hosts: cluster.dtrun, or that of this process.
Result<std::string> DtrunOnHosts(const config::Settings& settings);

// This process's environment.
std::map<std::string, std::string> Environment();

}  // namespace dtrun::cli
