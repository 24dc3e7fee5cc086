// `dtrun completion words`: what a shell may offer behind what was typed.
//
// Reads the plugin folders, PATH and the templates; main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dtrun::cli {

// `runs`: the verbs that take a program besides the root. Returns the exit code.
int ShowCandidates(const CLI::App& root, std::vector<const CLI::App*> runs,
                   const std::vector<std::string>& words);

}  // namespace dtrun::cli
