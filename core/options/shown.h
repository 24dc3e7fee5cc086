// What readers see of an option's value, whether it is printed as TOML or as JSON.
//
// Pure; any thread.
#pragma once

#include "core/options/value.h"

namespace dtrun::options {

// Durations and sizes as texts: "60s", "64KiB". "(secret)" in place of a secret, and of secrets in commands,
// variables and addresses as far as they are known (core/base/secrets.h). Unset stays unset.
Data Shown(const Spec& spec, Data data);

}  // namespace dtrun::options
