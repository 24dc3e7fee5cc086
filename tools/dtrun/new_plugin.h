// `dtrun plugins new` and `verify`, which use the installed SDK: its examples as templates, and its program
// dtrun-conformance.
//
// Functions; main thread.
#pragma once

#include <string>
#include <vector>

namespace dtrun::cli {

struct NewPluginArguments {
  std::string name;
  std::string language = "c++";  // "c", "c++" or "rust"
  bool launcher = false;         // else a backend
  std::string output;            // the folder to make; empty: the name, in the current folder
};

// Writes a plugin that builds and passes dtrun-conformance. The exit code.
int NewPlugin(const NewPluginArguments& arguments);

// Becomes dtrun-conformance, for `file` and with these arguments. Returns the exit code 2 if it cannot.
int VerifyPlugin(const std::string& file, const std::vector<std::string>& arguments);

}  // namespace dtrun::cli
