// The flags of a job that every verb with a config has, -n and --hosts for example, and the options that they
// stand for. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "tools/dtrun/prepare.h"

namespace dtrun::cli {

// --set and --plugin-dir; parsing fills `to`, which must outlive the verb.
void AddOverrides(CLI::App* verb, ConfigArguments* to);
// Those, --config, and what says how many ranks there are and where.
void AddJobFlags(CLI::App* verb, ConfigArguments* to);

// What the flags set, with the flag as origin.
std::vector<config::Given> GivenBy(const ConfigArguments& arguments);

}  // namespace dtrun::cli
