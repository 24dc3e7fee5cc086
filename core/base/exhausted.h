// What a user raises when the system gives a process no more memory or descriptors. Any thread.
#pragma once

#include <exception>
#include <string>

namespace dtrun {

// What was thrown, and the limit to look at: "out of memory; raise `ulimit -v`, which is 30000".
std::string Exhausted(const std::exception& thrown);

}  // namespace dtrun
