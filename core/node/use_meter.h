// Reads what the ranks of this host use beyond their processes: GPUs, by NVIDIA's management library (NVML),
// and the network.
//
// A call of NVML can block for seconds while a GPU is in trouble. So a thread of its own reads, which is
// never waited for and ends with this process; a question starts a reading and is answered from the last one.
// Owned by the host's resources; loop thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/verdict/facts.h"
#include "core/verdict/gpu_use.h"

namespace dtrun::node {

class UseMeter {
 public:
  // `library`: the name or path of NVML. Without it, which comes with the driver, no process uses a GPU.
  explicit UseMeter(std::string library = "libnvidia-ml.so.1");

  // The GPU of each process that uses one, the busiest of several, at the reading before. Empty: nothing has
  // been read yet.
  std::map<pid_t, verdict::GpuUse> Read() const;
  // Adds those to the ranks' looks, and what the host's network has moved.
  void AddTo(std::vector<verdict::RankDoing>& ranks) const;

 private:
  struct Shared;

  const std::shared_ptr<Shared> shared_;
};

}  // namespace dtrun::node
