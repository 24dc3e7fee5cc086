// Asks the built plugins as dtrun's probe does: for tests.
#pragma once

#include <string>
#include <vector>

#include "core/options/snapshot.h"
#include "core/plugin/ask_launcher.h"

namespace dtrun::schedulers {

inline Result<const plugin::Plugin*> Loaded(const std::string& name) {
  return plugin::Load({plugin::Kind::kLauncher,
                       name,
                       std::string(DTRUN_LAUNCHERS) + "/libdtrun_launcher_" + name + ".so",
                       "test",
                       {},
                       {}});
}

inline Result<hosts::Allocation> Ask(const std::string& name, const hosts::Environment& environment) {
  const auto launcher = Loaded(name);
  return launcher ? plugin::AskHosts(**launcher, dtrun_options(), environment) : launcher.error();
}

inline Result<std::vector<hosts::StartCommand>> AskToConnect(const std::string& name,
                                                             const std::vector<std::string>& names,
                                                             const hosts::Environment& environment) {
  const auto launcher = Loaded(name);
  if (!launcher) return launcher.error();
  return plugin::AskConnect(**launcher, dtrun_options(), {names, {"/opt/dtrun", "agent"}, environment});
}

}  // namespace dtrun::schedulers
