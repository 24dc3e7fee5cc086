// Platforms where RANK and WORLD_SIZE count hosts: GCP AI Platform, Alibaba PAI DLC, and
// the tasks of Spark's TorchDistributor.
#include "core/hosts/platforms.h"
#include "core/hosts/reading.h"

namespace dtrun::hosts {
namespace {

Allocation ReadHostNumbers(Reading& reading) {
  Allocation out;
  reading.Place("RANK", "WORLD_SIZE", &out);
  reading.Root("MASTER_ADDR", "MASTER_PORT", &out);
  return out;
}

// Checks that no launcher has already expanded the hosts into processes.
void NoProcesses(Reading& reading) {
  if (const std::string* rank = reading.Find("LOCAL_RANK")) {
    reading.Fail("LOCAL_RANK=" + *rank + " is set, so RANK numbers processes and not hosts");
  }
}

}  // namespace

Result<Allocation> ReadGcp(const Environment& environment) {
  Reading reading(environment, "gcp");
  Allocation out = ReadHostNumbers(reading);
  NoProcesses(reading);
  return reading.Take(std::move(out));
}

Result<Allocation> ReadPai(const Environment& environment) {
  Reading reading(environment, "pai");
  Allocation out = ReadHostNumbers(reading);
  NoProcesses(reading);
  if (const auto processes = reading.MaybeNumber("NPROC_PER_NODE", 1)) {
    out.processes_per_host = std::to_string(*processes);
  }
  return reading.Take(std::move(out));
}

// A task is one process, and TorchDistributor's torchrun would start one worker in it.
Result<Allocation> ReadSpark(const Environment& environment) {
  Reading reading(environment, "spark");
  Allocation out = ReadHostNumbers(reading);
  reading.Expect("NODE_RANK", out.own_index.value_or(0),
                 "RANK says otherwise: both are the number of the task");
  reading.Expect("LOCAL_RANK", 0, "a task of Spark has one process");
  out.processes_per_host = "1";
  return reading.Take(std::move(out));
}

}  // namespace dtrun::hosts
