// The displayed form of an option's value, for TOML and JSON output.
//
// Pure; any thread.
#pragma once

#include "core/options/value.h"

namespace dtrun::options {

// Converts durations and sizes to text: "60s", "64KiB". Replaces a secret by "(secret)", and also known
// secrets inside commands, variables and URLs (core/base/secrets.h). Unset stays unset.
Data Shown(const Spec& spec, Data data);

}  // namespace dtrun::options
