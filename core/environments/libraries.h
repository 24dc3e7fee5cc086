// Variables of communication libraries: they select interfaces and ports, and disable paths between GPUs.
// Also checks what a user's own value means on a host.
//
// A program may use any library, whatever the job's backend is: torch brings NCCL, Gloo and TensorPipe,
// mpi4py brings Open MPI. Therefore all of them are configured. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/endpoint.h"
#include "core/network/decision.h"

namespace dtrun::environments {

// Libraries that resolve the host's own name if no interface is set.
inline constexpr char kGoByName[] = "gloo in torch, MPI";

// Whether `variable` affects the ranks' libraries, or the devices and modules that they find.
bool MattersToRanks(std::string_view variable);

// For every rank of host `host`; `networks`: the network of each host. Skips a library that takes only names
// if the name stands for another address, or if its lists cannot express the name.
std::map<std::string, std::string> InterfaceVariables(const std::vector<network::Network>& networks,
                                                      std::size_t host);

// cluster.port_range in the form of each library.
std::map<std::string, std::string> PortVariables(const PortRange& range);

// Whether `variable` selects or excludes interfaces for a library.
bool NamesInterfaces(const std::string& variable);

// The library that reads `variable`: its name, and the prefixes of its file names, separated by spaces. Null
// if the variable does not name interfaces.
struct Library {
  std::string_view name, files;
};
const Library* LibraryOf(const std::string& variable);

// Whether the value matches none of the host's interfaces.
bool MeansNoInterface(const std::string& variable, const std::string& value,
                      const std::vector<network::Interface>& interfaces);

// Whether `variable` selects or excludes paths between GPUs for a library.
bool ChoosesGpuPaths(const std::string& variable);

// The opposite variable of the same library, which rejects both together; usually empty.
std::string Opposite(const std::string& variable);

// Checks the user's values, by host (empty: unset). Returns a sentence with the hosts on which the value
// matches no interface, or one that is not known to reach all hosts. Empty if the values are fine or
// `variable` does not name interfaces.
std::string CheckInterfaces(const std::string& variable, const std::vector<std::string>& values,
                            const network::Decision& decision);

}  // namespace dtrun::environments
