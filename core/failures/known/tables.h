// The known failures, by family: each is a table of its own file beside this one. NCCL's and
// CUDA's are in the SDK (dtrun/known/), because the nccl plugin speaks them too.
//
// Constants; any thread.
#pragma once

#include <span>

#include "dtrun/known/failure.hpp"

namespace dtrun::failures {

using known::KnownFailure;

std::span<const KnownFailure> GlooFailures();
std::span<const KnownFailure> UcxFailures();
std::span<const KnownFailure> MpiFailures();
std::span<const KnownFailure> TorchStoreFailures();  // how ranks of torch meet
std::span<const KnownFailure> TorchFailures();       // c10d, DDP, DataLoader, elastic
std::span<const KnownFailure> FrameworkFailures();   // Horovod, DeepSpeed
std::span<const KnownFailure> HostFailures();        // names, ssh, ports, limits, memory
std::span<const KnownFailure> LinkFailures();        // libraries, modules, glibc

}  // namespace dtrun::failures
