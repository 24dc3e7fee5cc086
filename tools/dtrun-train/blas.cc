#include "tools/dtrun-train/blas.h"

#include <dlfcn.h>

#include <fstream>
#include <sstream>
#include <utility>

namespace dtrun::train {
namespace {

// A library by a part of its path. Debian keeps the files of one alternative in a folder
// named after it, each with the generic file name.
struct Known {
  std::string_view part;
  const char* name;
};
constexpr Known kKnown[] = {
    {"openblas", "OpenBLAS"}, {"libmkl_", "MKL"}, {"blis", "BLIS"}, {"atlas", "ATLAS"}};

}  // namespace

Blas FindBlas(std::string_view maps) {
  Blas reference{"built into libtorch", "", false, ""};
  while (!maps.empty()) {
    const std::size_t end = maps.find('\n');
    const std::string_view line = maps.substr(0, end);
    maps.remove_prefix(end == std::string_view::npos ? maps.size() : end + 1);
    const std::size_t slash = line.find('/');
    if (slash == std::string_view::npos) continue;
    const std::string_view path = line.substr(slash);
    const std::string_view file = path.substr(path.rfind('/') + 1);
    const bool generic = file.substr(0, 10) == "libblas.so";
    for (const Known& known : kKnown) {
      const std::string_view place = generic ? path : file;
      if (place.find(known.part) != std::string_view::npos) return {known.name, std::string(path), false, ""};
    }
    if (generic) reference = {"reference BLAS", std::string(path), true, ""};
  }
  return reference;
}

std::string BetterKernels(std::string_view kernels, bool avx2, bool avx512) {
  if (kernels != "Prescott" && kernels != "Nehalem" && kernels != "Core2") return "";
  if (avx512) return "SKYLAKEX";
  return avx2 ? "HASWELL" : "";
}

Blas LoadedBlas() {
  std::ifstream maps("/proc/self/maps");
  std::ostringstream text;
  text << maps.rdbuf();
  Blas blas = FindBlas(text.str());
  using CoreName = char* (*)();  // openblas_get_corename() of cblas.h
  if (const auto name = reinterpret_cast<CoreName>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"))) {
    blas.kernels = name();
  }
  return blas;
}

}  // namespace dtrun::train
