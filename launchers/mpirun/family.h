// Which MPI an mpirun belongs to. All are called mpirun or mpiexec, and each has its own command line.
//
// Any thread; RecogniseFamily may run the program with --version.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "sdk/helpers/helper.h"

namespace dtrun::mpirun {

inline bool Has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

enum class Family {
  kOpenMpi,
  kMpich,  // MPICH's Hydra, and what its relatives have made of it
  kIntel,  // Intel MPI's Hydra
};

// By the name of its file, symbolic links followed ("orterun"); nothing where that does not tell.
inline std::optional<Family> FamilyOfName(std::string_view name) {
  for (const std::string_view part : {"orterun", "prterun", "openmpi", "ompi"}) {
    if (Has(name, part)) return Family::kOpenMpi;
  }
  if (Has(name, "mpich")) return Family::kMpich;
  return std::nullopt;  // Intel's is a mpiexec.hydra too
}

// By what it prints for --version.
inline std::optional<Family> FamilyOfVersion(std::string_view text) {
  if (Has(text, "Intel(R) MPI")) return Family::kIntel;
  if (Has(text, "HYDRA")) return Family::kMpich;
  for (const std::string_view part : {"Open MPI", "OpenRTE", "PRRTE", "prterun"}) {
    if (Has(text, part)) return Family::kOpenMpi;
  }
  return std::nullopt;
}

// `path` is the PATH to look it up in. What cannot be asked is taken for Open MPI's.
inline Family RecogniseFamily(const std::string& program, const std::string& path) {
  const std::string file = helpers::Find(program, path);
  std::error_code nowhere;
  const std::filesystem::path real =
      file.empty() ? std::filesystem::path() : std::filesystem::canonical(file, nowhere);
  for (const std::string& name :
       {real.filename().string(), std::filesystem::path(program).filename().string()}) {
    if (const auto family = FamilyOfName(name)) return *family;
  }
  if (!file.empty()) {
    // What it has printed so far when it does not end in time.
    const helpers::Answer answer = helpers::Ask({.command = {file, "--version"},
                                                 .with_errors = true,
                                                 .patience = std::chrono::seconds(5),
                                                 .most = 4096});
    if (const auto family = FamilyOfVersion(answer.text)) return *family;
  }
  return Has(program, "hydra") ? Family::kMpich : Family::kOpenMpi;
}

}  // namespace dtrun::mpirun
