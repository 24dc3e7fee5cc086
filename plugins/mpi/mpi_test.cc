// The mpi plugin: everything a backend must do is inherited; what is its own stands here.
//
// mpirun starts this program once per rank (under_mpirun.py); started alone it is rank 0 of 1.
#include <dlfcn.h>
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

TEST(MpiDevices, AreStagedWhereOpenMpiWasBuiltWithoutCuda) {
  void* const library = dlopen(MPI_SONAME, RTLD_NOW | RTLD_LOCAL);
  const auto query =
      reinterpret_cast<int (*)()>(library == nullptr ? nullptr : dlsym(library, "MPIX_Query_cuda_support"));
  if (query == nullptr || query() != 0) GTEST_SKIP() << "this Open MPI is no such one";
  const Subject subject({.plugin = MPI_PLUGIN_FILE});
  EXPECT_EQ(subject.Caps().device_kinds, 1u << DTRUN_DEVICE_HOST);
  EXPECT_EQ(subject.Caps().features & DTRUN_CAP_NO_STREAM, 0u);
  EXPECT_THAT(subject.LaunchInfo(1).facts.at("device"),
              ::testing::StartsWith("staged, because this Open MPI"));
}

}  // namespace
}  // namespace dtrun::conformance
