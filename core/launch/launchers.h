// The launcher plugins on the search path as sources of hosts and as connectors, each asked in a child
// process.
//
// Each sees the options that the config has for it: [launcher.options] of the one that it names for plans,
// and [launcher.NAME] of any. Each is asked for hosts once. Main thread; the children that wait for a request
// end with it, or with EndProbes().
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/hosts/launchers.h"
#include "core/options/snapshot.h"
#include "core/plugin/plugin.h"

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

  // From now on the launcher of this file has these options, and others what `read` says: the defaults, where
  // that is empty.
  using Read = std::function<Result<dtrun_options>(const plugin::Description& launcher)>;
  void SetOptions(const std::filesystem::path& file, dtrun_options options, Read read = {}) {
    chosen_ = file;
    options_ = std::move(options);
    read_ = std::move(read);
  }

  // Ends the children. What they said of themselves stays known.
  void EndProbes();

  const std::vector<plugin::Folder>& folders() const { return folders_; }

 private:
  struct Known {
    plugin::Description description;                 // with its file
    std::unique_ptr<plugin::Probe> probe;            // that has described it and was asked nothing yet
    std::optional<Result<hosts::Allocation>> found;  // once asked: every candidate's config reads the same
  };

  Result<dtrun_options> OptionsOf(const plugin::Description& launcher) const;
  Result<Known*> Describe(const std::string& name);
  Result<std::unique_ptr<plugin::Probe>> ProbeOf(Known& launcher);
  Result<hosts::Allocation> AskHosts(Known& launcher, const std::string& name,
                                     const hosts::Environment& environment);

  const std::vector<plugin::Folder> folders_;
  std::filesystem::path chosen_;  // the launcher of the config; empty: not known
  dtrun_options options_;
  Read read_;
  std::map<std::string, Known> known_;  // by the name that users type, or by the path
};

}  // namespace dtrun::launch
