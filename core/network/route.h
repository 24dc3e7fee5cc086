// Which interface this host's packets use, according to the kernel's routes and rules.
//
// Asks the system; any thread.
#pragma once

#include <string>

#include "core/network/candidate.h"

namespace dtrun::network {

// The interface for packets to `to` from a socket bound to the address of `from` but to no interface, if it
// differs from the candidate's: networks overlap, or a rule leads elsewhere. Empty: it is the candidate's
// own, the address belongs to a loopback interface, or the kernel gives no answer.
std::string LeavesBy(const Candidate& from, const Ip& to);

}  // namespace dtrun::network
