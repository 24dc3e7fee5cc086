#include "launchers/mpirun/family.h"

#include <chrono>
#include <filesystem>

#include "sdk/helpers/helper.h"

namespace dtrun::mpirun {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{5};
constexpr std::size_t kEnough = 4096;  // of what it prints

bool Has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// What it prints; what it has printed so far when it does not end in time.
std::string AskVersion(const std::string& file) {
  return helpers::Ask(
             {.command = {file, "--version"}, .with_errors = true, .patience = kPatience, .most = kEnough})
      .text;
}

}  // namespace

std::optional<Family> FamilyOfName(std::string_view name) {
  for (const std::string_view part : {"orterun", "prterun", "openmpi", "ompi"}) {
    if (Has(name, part)) return Family::kOpenMpi;
  }
  if (Has(name, "mpich")) return Family::kMpich;
  return std::nullopt;  // Intel's is a mpiexec.hydra too
}

std::optional<Family> FamilyOfVersion(std::string_view text) {
  if (Has(text, "Intel(R) MPI")) return Family::kIntel;
  if (Has(text, "HYDRA")) return Family::kMpich;
  for (const std::string_view part : {"Open MPI", "OpenRTE", "PRRTE", "prterun"}) {
    if (Has(text, part)) return Family::kOpenMpi;
  }
  return std::nullopt;
}

Family RecogniseFamily(const std::string& program, const std::string& path) {
  const std::string file = helpers::Find(program, path);
  std::error_code nowhere;
  const fs::path real = file.empty() ? fs::path() : fs::canonical(file, nowhere);
  for (const std::string& name : {real.filename().string(), fs::path(program).filename().string()}) {
    if (const auto family = FamilyOfName(name)) return *family;
  }
  if (!file.empty()) {
    if (const auto family = FamilyOfVersion(AskVersion(file))) return *family;
  }
  return Has(program, "hydra") ? Family::kMpich : Family::kOpenMpi;
}

}  // namespace dtrun::mpirun
