// The example configs in share/dtrun/configs. `dtrun config init` copies one to a new file.
//
// Functions; main thread. The files are configs/*.toml of the source tree.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace dtrun::cli {

struct Template {
  std::string name;     // "multi-host"
  std::string purpose;  // its first sentence
  std::string text;     // the whole file
};

// Sorted by name, "basic" first. An error if the installation lacks them.
Result<std::vector<Template>> Templates();

struct InitArguments {
  std::string file = "job.toml";  // "-": standard output
  std::string name = "basic";
  bool list = false;
  bool force = false;  // replaces an existing file
};

// Writes a file that must not exist, unless `force`. Never blocks, not even if the path is a pipe without a
// reader.
Status WriteNew(const std::string& file, const std::string& text, bool force);

// The exit code.
int InitConfig(const InitArguments& arguments);

}  // namespace dtrun::cli
