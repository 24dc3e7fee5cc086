// Errors prefixed with the place of the option that caused them: "train.toml:14:3: job.env: ...".
// If the place already ends with the option, as in "--set job.env", the option is not repeated. Any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/config/settings.h"

namespace dtrun::plan {

// "train.toml:14:3: job.env: "; empty for the command on the command line, which names no option.
std::string PlacePrefix(const config::Settings& settings, const std::string& key);

Error At(const config::Settings& settings, const std::string& key, const Error& error);
Error At(const config::Settings& settings, const std::string& key, std::string text);
// The same for the entry `name` in a table of strings.
Error AtEntry(const config::Settings& settings, const std::string& key, const std::string& name,
              const Error& error);

// An error of a plugin about its options. The place is that of the option with its value quoted in the error,
// else that of `kind`.name. No place if neither was given. `kind` is "backend" or "launcher".
Error AtPlugin(const config::Settings& settings, std::string_view kind, const Error& error);

}  // namespace dtrun::plan
