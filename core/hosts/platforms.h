// Reads each platform's allocation: one function per platform, registered in allocation.cc. Pure;
// any thread.
#pragma once

#include "core/hosts/allocation.h"

namespace dtrun::hosts {

Result<Allocation> ReadOpenMpi(const Environment& environment);
Result<Allocation> ReadPmi(const Environment& environment);
Result<Allocation> ReadMpiJob(const Environment& environment);
Result<Allocation> ReadAzureMl(const Environment& environment);
Result<Allocation> ReadGcp(const Environment& environment);
Result<Allocation> ReadVertex(const Environment& environment);
Result<Allocation> ReadPai(const Environment& environment);
Result<Allocation> ReadSpark(const Environment& environment);
Result<Allocation> ReadKubeflow(const Environment& environment);
Result<Allocation> ReadTorchrun(const Environment& environment);

}  // namespace dtrun::hosts
