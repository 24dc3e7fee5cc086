// Reads each platform's allocation: one function per platform, registered in allocation.cc. Pure;
// any thread.
#pragma once

#include "core/hosts/allocation.h"

namespace dtrun::hosts {

PlatformReader ReadOpenMpi, ReadPmi, ReadMpiJob, ReadAzureMl, ReadGcp, ReadVertex, ReadPai, ReadSpark,
    ReadKubeflow, ReadTorchrun;

}  // namespace dtrun::hosts
