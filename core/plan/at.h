// An error with the place of the option that caused it: "train.toml:14:3: job.env: ...".
// Used by the sources of this folder; any thread.
#pragma once

#include <string>

#include "core/base/error.h"
#include "core/config/settings.h"

namespace dtrun::plan {

inline Error At(const config::Settings& settings, const std::string& key, const Error& error) {
  const std::string& place = settings.Get(key).origin.place;
  return Error{error.code, place + (place.empty() ? "" : ": ") + key + ": " + error.text};
}

}  // namespace dtrun::plan
