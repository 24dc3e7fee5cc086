// By which interface this host's packets leave, as the kernel's routes and rules say.
//
// Asks the system; any thread.
#pragma once

#include <string>

#include "core/network/candidate.h"

namespace dtrun::network {

// The interface that carries what a socket bound to the address of `from`, and to no interface, sends to
// `to`, where it is another one than the candidate's: networks overlap, or a rule leads elsewhere. Empty:
// it is the candidate's own, the address is of a loopback interface, or the kernel does not say.
std::string LeavesBy(const Candidate& from, const Ip& to);

}  // namespace dtrun::network
