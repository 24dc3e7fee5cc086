// Processes of an MPI launcher: Open MPI's mpirun, a PMI one (MPICH, Intel MPI), and the
// launcher pod of Kubeflow's MPIJob.
#include "core/hosts/platforms.h"
#include "core/hosts/reading.h"

namespace dtrun::hosts {

// OMPI_COMM_WORLD_NODE_RANK numbers processes of a host, never hosts, so it is not used.
Result<Allocation> ReadOpenMpi(const Environment& environment) {
  Reading reading(environment, "openmpi");
  Allocation out;
  reading.Place("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &out);
  reading.OncePerHost("OMPI_COMM_WORLD_LOCAL_SIZE", "mpirun --map-by ppr:1:node dtrun");
  return reading.Take(out);
}

Result<Allocation> ReadPmi(const Environment& environment) {
  Reading reading(environment, "pmi");
  Allocation out;
  reading.Place("PMI_RANK", "PMI_SIZE", &out);
  reading.OncePerHost("MPI_LOCALNRANKS", "mpiexec -ppn 1 dtrun");
  return reading.Take(out);
}

Result<Allocation> ReadMpiJob(const Environment& environment) {
  Reading reading(environment, "mpijob");
  Allocation out;
  const std::string role = reading.Text("K_MPI_JOB_ROLE");
  if (!role.empty() && role != "launcher") {
    reading.Fail("K_MPI_JOB_ROLE says '" + role +
                 "'; dtrun runs in the pod of the launcher, which starts the others");
  }
  for (const char* name : {"OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"}) {
    if (const std::string* file = reading.Find(name)) out.hostfile = *file;
  }
  if (out.hostfile.empty()) {
    reading.Fail("OMPI_MCA_orte_default_hostfile, HYDRA_HOST_FILE and I_MPI_HYDRA_HOST_FILE are unset");
  }
  return reading.Take(out);
}

}  // namespace dtrun::hosts
