// The addresses at which a rank waits for the others, in the few bytes that differ between them.
//
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dtrun/interfaces.hpp"

namespace dtrun::gloo_plugin {

// The address on `interface` at which a rank listens. The loopback network has 2^24 of them, so
// ranks of one host do not search for ports that others have left free.
std::string ListenAddress(const interfaces::Interface& interface, int rank);

// REQUIRES at least one; all of one length below 256.
std::string PackAddresses(const std::vector<std::string>& addresses);
// Number `index` of them. Throws sdk::Failure when `packed` has no such address.
std::string UnpackAddress(const std::string& packed, std::size_t index);

}  // namespace dtrun::gloo_plugin
