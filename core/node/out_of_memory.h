// Whether the kernel has killed processes of a generation because memory ran out, and what the user is told.
//
// Owned by the local host, one for each generation; loop thread.
#pragma once

#include <string>
#include <vector>

#include "core/node/containment.h"
#include "core/process/memory_evidence.h"
#include "core/process/process.h"

namespace dtrun::node {

class OutOfMemory {
 public:
  // Make it before the ranks start. `containment` must outlive it.
  explicit OutOfMemory(const Containment& containment)
      : containment_(containment), evidence_(containment.Memory()) {}

  bool Seen() const { return evidence_.Rose(); }
  // Lines for the user at the end of a rank. The kernel may have killed a process that the rank had started
  // instead of the rank: that is told once.
  std::vector<std::string> Lines(const process::Ending& ending);

 private:
  const Containment& containment_;
  const process::MemoryEvidence evidence_;
  bool told_ = false;
};

}  // namespace dtrun::node
