// For tests: a JobSpec from --set alone, without plugins.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/spec/read.h"

namespace dtrun::launch::testing {

inline spec::JobSpec SettingsOf(std::vector<std::string> sets) {
  spec::Request request;
  request.command = {"true"};
  request.sets = std::move(sets);
  return spec::Load(request, {}).spec;
}

}  // namespace dtrun::launch::testing
