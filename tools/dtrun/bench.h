// The verb `dtrun bench`: its command line, and its start; and `dtrun bench-layer`, with which it starts the
// job of each layer. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/bench/program/options.h"
#include "tools/dtrun/job_flags.h"

namespace dtrun::cli {

// Adds the verb; parsing fills `to`, which must outlive it.
CLI::App* AddBench(CLI::App& app, bench::Arguments* to);
// Returns the exit code.
int Bench(const bench::Arguments& arguments);

// Likewise, for nobody but Bench. `socket` is the session's (tools/bench/program/channel.h).
CLI::App* AddBenchLayer(CLI::App& app, ConfigArguments* to, std::string* socket);
// Runs the job as `dtrun run`, but for a header: the session is told what was chosen.
int BenchLayer(const ConfigArguments& arguments, const std::string& socket);

}  // namespace dtrun::cli
