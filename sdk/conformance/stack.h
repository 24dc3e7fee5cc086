// "dtrun.plugins/1" of the suite's host: a plugin under test may stand on another one, which is no part of
// the test. The option names its file; its own options are those of the test that begin with its name and a
// dot. Any thread.
#pragma once

#include <string>

#include "dtrun/abi/services.h"

namespace dtrun::conformance {

const dtrun_plugins_service* PluginsService();

// What the user typed wrong about a plugin below, in the last `open` of this thread; empty: nothing.
const std::string& WrongBelow();
// Whether this thread has opened a plugin of that name.
bool HasOpened(const std::string& name);

}  // namespace dtrun::conformance
