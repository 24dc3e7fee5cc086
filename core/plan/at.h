// Errors prefixed with the place of the option that caused them: "train.toml:14:3: job.env: ...".
// If the place already ends with the option, as in "--set job.env", the option is not repeated. Any
// thread.
#pragma once

#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/spec/job_spec.h"

namespace dtrun::plan {

// "train.toml:14:3: job.env: "; empty for the command on the command line, which names no option.
std::string PlacePrefix(const spec::AnyField& field);

Error At(const spec::AnyField& field, const Error& error);
Error At(const spec::AnyField& field, std::string text);
template <class... Args>
Error At(const spec::AnyField& field, fmt::format_string<Args...> text,
         Args&&... args) requires(sizeof...(Args) > 0) {
  return At(field, fmt::format(text, std::forward<Args>(args)...));
}
// The same for the entry `name` in a table of strings.
Error AtEntry(const spec::JobSpec& spec, const spec::AnyField& table, const std::string& name,
              const Error& error);

// An error of a plugin about its options. The place is that of the option with its value quoted in the error,
// else that of `name`, the option that names the plugin. No place if neither was given.
Error AtPlugin(const spec::PluginOptions& options, const spec::AnyField& name, const Error& error);

}  // namespace dtrun::plan
