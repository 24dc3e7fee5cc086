// An error with the place of the option that caused it: "train.toml:14:3: job.env: ...".
// A place that ends with the option, "--set job.env", does for both. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/config/settings.h"

namespace dtrun::plan {

// "train.toml:14:3: job.env: "; empty for the command itself, which names no option.
std::string PlacePrefix(const config::Settings& settings, const std::string& key);

Error At(const config::Settings& settings, const std::string& key, const Error& error);
Error At(const config::Settings& settings, const std::string& key, std::string text);
// At `name` of a table of strings.
Error AtEntry(const config::Settings& settings, const std::string& key, const std::string& name,
              const Error& error);

// What a plugin says against its options: at the one of them whose value stands in quotes in it, else at
// `kind`.name. `kind` is "backend" or "launcher". Without a place where neither was given.
Error AtPlugin(const config::Settings& settings, std::string_view kind, const Error& error);

}  // namespace dtrun::plan
