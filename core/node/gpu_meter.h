// Reads what NVIDIA's management library (NVML) says about the GPUs that processes of this host use.
//
// A call of NVML can block for seconds while a GPU is in trouble. So a thread of its own reads, which is never
// waited for and ends with this process; a question starts a reading and is answered from the last one.
// Owned by the local host; loop thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>

#include "core/verdict/gpu_use.h"

namespace dtrun::node {

class GpuMeter {
 public:
  // `library`: the name or path of NVML. Without it, which comes with the driver, no process uses a GPU.
  explicit GpuMeter(std::string library = "libnvidia-ml.so.1");

  // The GPU of each process that uses one, the busiest of several, at the reading before. Empty: nothing has
  // been read yet.
  std::map<pid_t, verdict::GpuUse> Read();

 private:
  struct Shared;

  const std::shared_ptr<Shared> shared_;
};

}  // namespace dtrun::node
