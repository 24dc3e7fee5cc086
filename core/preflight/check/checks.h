// What `dtrun doctor` looks at on a host, by subject.
//
// Each function reads the system and appends what it found, warnings and problems with their
// fix. Any thread; none takes longer than a name server does.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/network/interface.h"
#include "core/preflight/preflight.h"

namespace dtrun::preflight {

using Checks = std::vector<Check>;

// All of them.
Checks CheckHost(const Request& request, const std::vector<BackendAnswer>& backends);

// Own name and those of the other hosts, forward and back; the port of rank 0.
void CheckNames(const Request& request, Checks* to);
void CheckPorts(const Request& request, Checks* to);

// The program of the ranks and their working directory.
void CheckProgram(const Request& request, Checks* to);

// Locked memory, open files, processes, /dev/shm, memory.
void CheckLimits(const Request& request, Checks* to);

// Processors, BLAS, GPUs, network interfaces.
void CheckMachine(const Request& request, Checks* to);

// Values of the ranks' variables by which a library finds no interface of a host: a problem where the job's
// backend reads them, a warning where its program may. Pure, but for a look at the program's file.
struct InterfaceVariables {
  const std::map<std::string, std::string>& variables;  // of the ranks
  std::filesystem::path program;                        // empty: not known
  std::vector<std::string> of_backend;                  // names that it reads
  std::vector<network::Interface> interfaces;
};
Checks CheckInterfaceVariables(const InterfaceVariables& given);
// The file of the first word of a command; empty when there is none.
std::filesystem::path ProgramOf(const std::string& word, const std::string& folder,
                                const std::string& search_path);
// Those that a backend says decide its interface.
std::vector<std::string> VariablesOfBackend(const std::vector<std::pair<std::string, std::string>>& facts);

// What may stand between GPUs that shall read each other's memory: an IOMMU, bridges that redirect.
// Nothing of fewer than two GPUs. `root` is "/" but in tests.
void CheckPeers(const std::filesystem::path& root, Checks* to);

// RDMA ports: which would be used, by which of the backends that have answered, and why not. `root` is "/"
// but in tests.
void CheckRdma(const std::filesystem::path& root, const std::vector<BackendAnswer>& backends, Checks* to);

}  // namespace dtrun::preflight
