// Whether the ranks of a host can map each other's memory. Ranks in separate containers cannot: they have
// different user or PID namespaces, or do not see the host's /proc.
//
// Owned by the runtime and used before it makes the world. One thread.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/comm/shm/memory.h"
#include "core/plugin/host.h"

namespace dtrun::shm {

class Reach {
 public:
  // Why `rank` cannot share memory with the first rank of `host` that called this on `kv`; empty: it can. The
  // first rank's sample can be opened while its Reach lives.
  Result<std::string> WhyNot(dtrun_kv& kv, int rank, int host);

 private:
  Memory sample_;
};

}  // namespace dtrun::shm
