// The launcher plugins on the search path as sources of hosts and as connectors. Each runs in a child
// process.
//
// Each sees its options from the config: [launcher.options] for the one that the config names for plans, and
// [launcher.NAME] for any. Each is queried for hosts once. Main thread; the waiting children end with that
// thread, or with EndProbes().
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/hosts/launchers.h"
#include "core/options/snapshot.h"
#include "core/plugin/plugin.h"
#include "core/spec/read.h"

namespace dtrun::launch {

class LauncherPlugins final : public hosts::Launchers {
 public:
  explicit LauncherPlugins(std::vector<plugin::Folder> folders) : folders_(std::move(folders)) {}

  std::vector<std::string> With(Ability ability) override;
  Result<bool> Has(const std::string& name, Ability ability) override;
  Result<hosts::Allocation> FindHosts(const std::string& name,
                                      const hosts::Environment& environment) override;
  Result<std::vector<hosts::StartCommand>> Connect(const std::string& name,
                                                   const std::vector<std::string>& hosts,
                                                   const std::vector<std::string>& argv) override;

  // Sets the options of the launcher in this file; `read` reads those of another one, which has the defaults
  // if it is empty.
  void SetOptions(const std::filesystem::path& file, dtrun_options options, spec::OptionsReader read = {}) {
    chosen_ = file;
    options_ = std::move(options);
    read_ = std::move(read);
  }

  // Ends the children. Their descriptions stay available.
  void EndProbes();

  const std::vector<plugin::Folder>& folders() const { return folders_; }

 private:
  struct Known {
    plugin::Description description;                 // includes its file
    std::unique_ptr<plugin::Probe> probe;            // described, but not yet queried
    std::optional<Result<hosts::Allocation>> found;  // set after the query, for the configs of all candidates
  };

  Result<dtrun_options> OptionsOf(const plugin::Description& launcher) const;
  Result<Known*> Describe(const std::string& name);
  Result<std::unique_ptr<plugin::Probe>> ProbeOf(Known& launcher);
  Result<hosts::Allocation> AskHosts(Known& launcher, const std::string& name,
                                     const hosts::Environment& environment);

  const std::vector<plugin::Folder> folders_;
  std::filesystem::path chosen_;  // the launcher in the config; empty: unknown
  dtrun_options options_;
  spec::OptionsReader read_;
  std::map<std::string, Known> known_;  // by typed name, or by path
};

}  // namespace dtrun::launch
