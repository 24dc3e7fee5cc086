// Variables of the libraries for communication that programs bring: which interfaces and ports to use, what a
// user's own value means on a host, and which paths between GPUs are off.
//
// A program uses what it likes, whatever the job's backend is: torch brings NCCL, Gloo and
// TensorPipe, mpi4py brings Open MPI. So all of them hear of the choice. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/port_range.h"
#include "core/network/decision.h"

namespace dtrun::environments {

// Those that look up the host's own name where nothing tells them an interface.
inline constexpr char kGoByName[] = "gloo in torch, MPI";

// Whether `variable` changes what libraries of ranks do, or which devices and modules they find.
bool MattersToRanks(std::string_view variable);

// For every rank of host `host`; `networks` has what each host of the job uses. A library that takes names
// only is left alone when the name means another address, or when its lists cannot say it.
std::map<std::string, std::string> InterfaceVariables(const std::vector<network::Network>& networks,
                                                      std::size_t host);

// cluster.port_range, as each library takes it.
std::map<std::string, std::string> PortVariables(const PortRange& range);

// Whether `variable` tells a library which interfaces to use, or which to leave out.
bool NamesInterfaces(const std::string& variable);

// The library that reads `variable`: its name, and how the files begin that bring it, between spaces. Null
// when it names no interfaces.
struct Library {
  std::string_view name, files;
};
const Library* LibraryOf(const std::string& variable);

// Whether the library would find none of a host's interfaces by that value.
bool MeansNoInterface(const std::string& variable, const std::string& value,
                      const std::vector<network::Interface>& interfaces);

// Whether `variable` tells a library which paths between GPUs to use, or which to leave out.
bool ChoosesGpuPaths(const std::string& variable);

// The variable that says the contrary of `variable` to the same library, which refuses both at once;
// empty for most.
std::string Opposite(const std::string& variable);

// What is wrong with what the user has set, by host (empty: nothing there): a sentence that names the hosts
// where it means no interface, or one that is not known to reach all hosts. Empty when nothing is, or when
// `variable` names no interfaces.
std::string CheckInterfaces(const std::string& variable, const std::vector<std::string>& values,
                            const network::Decision& decision);

}  // namespace dtrun::environments
