// torchrun's variables: PET_*, which Kubeflow's operators (PyTorchJob v1, TrainJob v2) set for the
// torchrun of each pod, and the variables of torchrun's own workers.
#include <fmt/format.h>

#include "core/hosts/platforms.h"
#include "core/hosts/reading.h"

namespace dtrun::hosts {
namespace {

// "4" or "2:4", as torchrun --nnodes takes it.
void ReadHostCount(Reading& reading, Allocation* out) {
  const std::string text = reading.Text("PET_NNODES");
  if (text.empty()) return;
  const std::size_t colon = text.find(':');
  const Environment parts = {{"min", text.substr(0, colon)},
                             {"max", colon == std::string::npos ? text : text.substr(colon + 1)}};
  Reading numbers(parts, "");
  out->count = {numbers.Number("min", 1), numbers.Number("max", 1)};
  if (!numbers.Take({}).ok() || out->count.max < out->count.min) {
    reading.Fail(fmt::format("PET_NNODES='{}' is neither a number nor MIN:MAX", text));
  }
}

// PyTorchJob v1 also sets RANK to the pod's number and WORLD_SIZE to pods × processes; a process
// count given as a word counts as 1 there.
void CheckVersion1(Reading& reading, const Allocation& out, int processes) {
  if (out.own_index) {
    reading.Expect("RANK", *out.own_index, fmt::format("PET_NODE_RANK says {}", *out.own_index));
  }
  if (out.count.min != out.count.max) return;
  reading.Expect("WORLD_SIZE", out.count.max * processes,
                 fmt::format("PET_NNODES says {} hosts, PET_NPROC_PER_NODE says {}", out.count.max,
                             out.processes_per_host.empty() ? "nothing" : out.processes_per_host));
}

Allocation ReadPet(Reading& reading) {
  Allocation out;
  ReadHostCount(reading, &out);
  out.everywhere = true;
  const bool elastic = out.count.max > out.count.min;
  // An elastic pod has no number: the rendezvous assigns one.
  out.own_index = elastic ? reading.MaybeNumber("PET_NODE_RANK", 0) : reading.Number("PET_NODE_RANK", 0);
  if (out.own_index && *out.own_index >= out.count.max) reading.Disagree("PET_NODE_RANK", "PET_NNODES");
  if (const std::string* text = reading.Find("PET_NPROC_PER_NODE")) out.processes_per_host = *text;
  reading.Root("PET_MASTER_ADDR", "PET_MASTER_PORT", &out);
  return out;
}

}  // namespace

Result<Allocation> ReadKubeflow(const Environment& environment) {
  Reading reading(environment, "kubeflow");
  Allocation out = ReadPet(reading);
  const std::string& text = out.processes_per_host;
  int processes = 1;
  if (text != "auto" && text != "cpu" && text != "gpu" && !text.empty()) {
    processes = reading.MaybeNumber("PET_NPROC_PER_NODE", 1).value_or(1);
  }
  CheckVersion1(reading, out, processes);
  return reading.Take(std::move(out));
}

// A worker has TORCHELASTIC_RUN_ID, and may have inherited the PET_* of its torchrun.
Result<Allocation> ReadTorchrun(const Environment& environment) {
  Reading reading(environment, "torchrun");
  if (reading.Find("TORCHELASTIC_RUN_ID") == nullptr && reading.Find("PET_NNODES") != nullptr) {
    return reading.Take(ReadPet(reading));
  }
  Allocation out;
  reading.Text("TORCHELASTIC_RUN_ID");
  reading.Place("GROUP_RANK", "GROUP_WORLD_SIZE", &out);
  reading.OncePerHost("LOCAL_WORLD_SIZE", "torchrun --nproc-per-node 1 --no-python dtrun");
  reading.Root("MASTER_ADDR", "MASTER_PORT", &out);
  out.rank_port_taken = true;  // torchrun's agent serves its workers' store there
  return reading.Take(std::move(out));
}

}  // namespace dtrun::hosts
