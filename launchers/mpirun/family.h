// Which MPI an mpirun belongs to. All are called mpirun or mpiexec, and each has its own command line.
//
// Any thread; RecogniseFamily may run the program with --version.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dtrun::mpirun {

enum class Family {
  kOpenMpi,
  kMpich,  // MPICH's Hydra, and what its relatives have made of it
  kIntel,  // Intel MPI's Hydra
};

// By the name of its file, symbolic links followed ("orterun"); nothing where that does not tell.
std::optional<Family> FamilyOfName(std::string_view name);

// By what it prints for --version.
std::optional<Family> FamilyOfVersion(std::string_view text);

// `path` is the PATH to look it up in. What cannot be asked is taken for Open MPI's.
Family RecogniseFamily(const std::string& program, const std::string& path);

}  // namespace dtrun::mpirun
