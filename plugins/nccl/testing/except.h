// Cases of the inherited suite that a backend does not meet, with the reason. They are reported
// as skipped, so that nobody takes them for passed.
#pragma once

#include <map>
#include <string>

namespace dtrun::nccl_test {

// Names as "Suite.Case". Call once, before main. Returns true.
bool Except(std::map<std::string, std::string> reasons);

}  // namespace dtrun::nccl_test
