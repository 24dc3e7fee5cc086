// Azure ML: an MPI job, or a PyTorch job, each with one process per host.
//
// The MPI job's master is derived as Azure's own recipe does (a copy of it is DeepSpeed's
// comm.py, patch_aml_env_for_torch_nccl_backend): on several hosts AZ_BATCH_MASTER_NODE
// without its port, with MASTER_PORT or else 6105; on one AZ_BATCHAI_MPI_MASTER_NODE
// and 54965, whatever MASTER_PORT says.
#include <fmt/format.h>

#include "core/hosts/platforms.h"
#include "core/hosts/reading.h"

namespace dtrun::hosts {
namespace {

constexpr int kSeveralHostsPort = 6105;
constexpr int kOneHostPort = 54965;
constexpr char kFix[] = "set the job's process count per node to 1";

// "10.0.0.4:6000" or "[fe80::1]:6000" without the port.
std::string WithoutPort(const std::string& text) {
  if (text.starts_with('[')) return text.substr(1, text.find(']') - 1);
  return text.substr(0, text.find(':'));
}

void ReadMpi(Reading& reading, bool intel, Allocation* out) {
  reading.Place(intel ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK", intel ? "PMI_SIZE" : "OMPI_COMM_WORLD_SIZE",
                out);
  reading.OncePerHost(intel ? "MPI_LOCALNRANKS" : "OMPI_COMM_WORLD_LOCAL_SIZE", kFix);
  if (out->count.max == 1) {
    reading.RootAddress("AZ_BATCHAI_MPI_MASTER_NODE", out);
    out->rank_port = kOneHostPort;
    return;
  }
  out->root_address = WithoutPort(reading.Text("AZ_BATCH_MASTER_NODE"));
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
