// The verb `dtrun bench`: its command line, and its start. Main thread.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/dtrun-bench/options.h"

namespace dtrun::cli {

// Adds the verb; parsing fills `to`, which must outlive it.
CLI::App* AddBench(CLI::App& app, bench::Arguments* to);
// Returns the exit code.
int Bench(const bench::Arguments& arguments);

}  // namespace dtrun::cli
