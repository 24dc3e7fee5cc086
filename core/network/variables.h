// The variables by which libraries for communication are told an interface, and what a user's own
// value of one of them means on a host.
//
// A program uses what it likes, whatever the job's backend is: torch brings NCCL, Gloo and
// TensorPipe, mpi4py brings Open MPI. So all of them hear of the choice. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/network/decision.h"

namespace dtrun::network {

// For every rank of host `host`; `networks` has what each host of the job uses. A library that takes names
// only is left alone when the name means another address.
std::map<std::string, std::string> Variables(const std::vector<Network>& networks, std::size_t host);

// Whether `variable` tells a library which interfaces to use, or which to leave out.
bool NamesInterfaces(const std::string& variable);

// Whether the lists of Gloo, UCX, NCCL and Open MPI can say this name: their ',' separates, and a '^' or '='
// in front means something else.
bool Sayable(const std::string& interface);

// The variable that says the contrary of `variable` to the same library, which refuses both at once;
// empty for most.
std::string Opposite(const std::string& variable);

// What is wrong with what the user has set, by host (empty: nothing there): a sentence that names the hosts
// where it means no interface, or one that is not proven. Empty when nothing is, or when `variable`
// names no interfaces.
std::string CheckOwnValue(const std::string& variable, const std::vector<std::string>& values,
                          const Decision& decision);

}  // namespace dtrun::network
