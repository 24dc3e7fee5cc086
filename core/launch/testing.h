// For tests: settings from --set alone, without plugins.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/config/settings.h"

namespace dtrun::launch::testing {

inline config::Settings SettingsOf(std::vector<std::string> sets) {
  config::Request request;
  request.command = {"true"};
  request.sets = std::move(sets);
  return config::Load(request, {}).settings;
}

}  // namespace dtrun::launch::testing
