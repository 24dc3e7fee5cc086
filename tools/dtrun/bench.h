// The verb `dtrun bench`: its command line and its start. Also `dtrun bench-layer`, which it uses to start
// the job of each layer. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/bench/program/options.h"
#include "tools/dtrun/job_flags.h"

namespace dtrun::cli {

// Adds the verb. Parsing fills `to`, which must outlive it.
CLI::App* AddBench(CLI::App& app, bench::Arguments* to);
// Returns the exit code.
int Bench(const bench::Arguments& arguments);

// The same for bench-layer, for internal use by Bench. `socket`: the session's
// (tools/bench/program/channel.h).
CLI::App* AddBenchLayer(CLI::App& app, ConfigArguments* to, std::string* socket);
// Runs the job like `dtrun run`, but without a header: reports the choices to the session instead.
int BenchLayer(const ConfigArguments& arguments, const std::string& socket);

}  // namespace dtrun::cli
