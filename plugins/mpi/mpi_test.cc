// The mpi plugin: everything a backend must do is inherited; what is its own stands here.
//
// mpirun starts this program once per rank (under_mpirun.py); started alone it is rank 0 of 1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sdk/conformance/backend_suite.h"
#include "sdk/conformance/subject.h"

namespace dtrun::conformance {
namespace {

const BackendUnderTest& Mpi() {
  static const BackendUnderTest backend{
      .plugin = MPI_PLUGIN_FILE,
      .worlds = {1, 2, 3, 4},
      .process = ProcessFromEnvironment("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SUITE_FOLDER")};
  return backend;
}

const bool kRegistered = RegisterBackendSuite(Mpi());

}  // namespace
}  // namespace dtrun::conformance
