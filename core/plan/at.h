// An error with the place of the option that caused it: "train.toml:14:3: job.env: ...".
// A place that ends with the option, "--set job.env", does for both. Any thread.
#pragma once

#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/config/settings.h"

namespace dtrun::plan {

inline Error At(const config::Settings& settings, const std::string& key, const Error& error) {
  const std::string& place = settings.Get(key).origin.place;
  if (place == "command line") return error;  // the command itself: no option was named
  const std::string before = place.empty() || place.ends_with(key) ? place : place + ": ";
  return Error{error.code, before + (place.ends_with(key) ? "" : key) + ": " + error.text};
}

inline Error At(const config::Settings& settings, const std::string& key, std::string text) {
  return At(settings, key, Error{DTRUN_INVALID_ARGUMENT, std::move(text)});
}

}  // namespace dtrun::plan
