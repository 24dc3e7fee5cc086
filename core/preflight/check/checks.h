// What `dtrun doctor` looks at on a host, by subject.
//
// Each function reads the system and appends what it found, warnings and problems with their
// fix. Any thread; none takes longer than a name server does.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

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

// What may stand between GPUs that shall read each other's memory: an IOMMU, bridges that redirect.
// Nothing of fewer than two GPUs. `root` is "/" but in tests.
void CheckPeers(const std::filesystem::path& root, Checks* to);

// RDMA ports: which would be used, by which of the backends that have answered, and why not. `root` is "/"
// but in tests.
void CheckRdma(const std::filesystem::path& root, const std::vector<BackendAnswer>& backends, Checks* to);

}  // namespace dtrun::preflight
