// Azure ML: an MPI job, or a PyTorch job, each with one process per host.
//
// The MPI job's master follows Azure's own recipe (copied in DeepSpeed's comm.py,
// patch_aml_env_for_torch_nccl_backend). On several hosts it is AZ_BATCH_MASTER_NODE without its
// port, with MASTER_PORT or else 6105. On one host it is AZ_BATCHAI_MPI_MASTER_NODE and 54965,
// whatever MASTER_PORT is.
#include <fmt/format.h>

#include "core/base/endpoint.h"
#include "core/hosts/platforms.h"
#include "core/hosts/reading.h"

namespace dtrun::hosts {
namespace {

constexpr int kSeveralHostsPort = 6105;
constexpr int kOneHostPort = 54965;
constexpr char kFix[] = "set the job's process count per node to 1";

void ReadMpi(Reading& reading, bool intel, Allocation* out) {
  reading.Place(intel ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK", intel ? "PMI_SIZE" : "OMPI_COMM_WORLD_SIZE",
                out);
  reading.OncePerHost(intel ? "MPI_LOCALNRANKS" : "OMPI_COMM_WORLD_LOCAL_SIZE", kFix);
  if (out->count.max == 1) {
    reading.RootAddress("AZ_BATCHAI_MPI_MASTER_NODE", out);
    out->rank_port = kOneHostPort;
    return;
  }
  if (const std::string master = reading.Text("AZ_BATCH_MASTER_NODE"); !master.empty()) {
    const Result<HostParts> parts = SplitHost(master);
    if (!parts) reading.Fail("AZ_BATCH_MASTER_NODE: " + parts.error().text);
    if (parts) out->root_address = parts->host;
  }
  out->rank_port = reading.MaybeNumber("MASTER_PORT", 1).value_or(kSeveralHostsPort);
}

void ReadTorch(Reading& reading, Allocation* out) {
  reading.Place("NODE_RANK", "WORLD_SIZE", out);
  reading.Expect("RANK", out->own_index.value_or(0),
                 "NODE_RANK says otherwise: with one process per host they are equal");
  reading.Expect("LOCAL_RANK", 0, fmt::format("dtrun starts the ranks itself; {}", kFix));
  reading.Root("MASTER_ADDR", "MASTER_PORT", out);
}

}  // namespace

Result<Allocation> ReadAzureMl(const Environment& environment) {
  Reading reading(environment, "azureml");
  Allocation out;
  const bool open = reading.Find("OMPI_COMM_WORLD_RANK") != nullptr;
  const bool intel = !open && reading.Find("PMI_RANK") != nullptr;
  if (open || intel || reading.Find("NODE_RANK") == nullptr) {
    ReadMpi(reading, intel, &out);
  } else {
    ReadTorch(reading, &out);
  }
  return reading.Take(out);
}

}  // namespace dtrun::hosts
