// `dtrun completion words`: prints completions for a partial command line.
//
// Reads the plugin folders, PATH and the templates; main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dtrun::cli {

// `runs`: verbs, besides the root, that take a program. Returns the exit code.
int ShowCandidates(const CLI::App& root, std::vector<const CLI::App*> runs,
                   const std::vector<std::string>& words);

}  // namespace dtrun::cli
