// The checks of `dtrun doctor` on a host, by subject.
//
// Each function reads the system and appends its findings, warnings and problems with their fix. Any thread;
// the slowest step is a name server's answer.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/network/interface.h"
#include "core/preflight/preflight.h"

namespace dtrun::preflight {

using Checks = std::vector<Check>;

// Runs all checks.
Checks CheckHost(const Request& request, const std::vector<BackendAnswer>& backends);

// The host's own name and those of the others, forward and reverse; the port of rank 0.
void CheckNames(const Request& request, Checks* to);
void CheckPorts(const Request& request, Checks* to);

// The ranks' program and working directory.
void CheckProgram(const Request& request, Checks* to);

// Locked memory, open files, processes, /dev/shm, memory.
void CheckLimits(const Request& request, Checks* to);

// Processors, BLAS, GPUs, network interfaces.
void CheckMachine(const Request& request, Checks* to);

// Values of the ranks' variables with which a library finds no interface on a host: a problem if the job's
// backend reads them, a warning if its program may. Pure, except for a look at the program's file.
struct InterfaceVariables {
  const std::map<std::string, std::string>& variables;  // of the ranks
  std::filesystem::path program;                        // empty: unknown
  std::vector<std::string> of_backend;                  // names that the backend reads
  std::vector<network::Interface> interfaces;
};
Checks CheckInterfaceVariables(const InterfaceVariables& given);
// The file of a command's first word; empty if there is none.
std::filesystem::path ProgramOf(const std::string& word, const std::string& folder,
                                const std::string& search_path);
// The variables that select a backend's interface, from the backend's facts.
std::vector<std::string> VariablesOfBackend(const Facts& facts);

// Obstacles between GPUs that should read each other's memory: an IOMMU, bridges that redirect. No check with
// fewer than two GPUs. `root` is "/" except in tests.
void CheckPeers(const std::filesystem::path& root, Checks* to);

// RDMA ports: which ones the backends that answered would use, and why others are not. `root` is "/" except
// in tests.
void CheckRdma(const std::filesystem::path& root, const std::vector<BackendAnswer>& backends, Checks* to);

}  // namespace dtrun::preflight
