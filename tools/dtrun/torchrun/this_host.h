// Whether a host of an endpoint is this machine. Asks the resolver; any thread.
#pragma once

#include <string>

namespace dtrun::torchrun {

// True for localhost, loopback addresses, this machine's name, and every name or address that
// resolves to an address of one of its interfaces: secondary ones too, which torchrun misses.
bool IsThisHost(const std::string& host);

}  // namespace dtrun::torchrun
