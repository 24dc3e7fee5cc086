// The verb `dtrun ps`: the jobs of this user on this host, live and past. Main thread.
#pragma once

#include <CLI/CLI.hpp>

namespace dtrun::cli {

struct PsArguments {
  bool all = false;
  bool json = false;
};

// Adds the verb. Parsing fills `to`, which must outlive it.
CLI::App* AddPs(CLI::App& app, PsArguments* to);
// The exit code: 0.
int Ps(const PsArguments& arguments);

}  // namespace dtrun::cli
