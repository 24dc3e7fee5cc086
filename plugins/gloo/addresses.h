// The addresses at which a rank waits for the others, in the few bytes that differ between them.
//
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dtrun::gloo_plugin {

// REQUIRES at least one; all of one length below 256.
std::string PackAddresses(const std::vector<std::string>& addresses);
// Number `index` of them. Throws sdk::Failure when `packed` has no such address.
std::string UnpackAddress(const std::string& packed, std::size_t index);

}  // namespace dtrun::gloo_plugin
