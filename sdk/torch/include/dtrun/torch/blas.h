// Which BLAS library does the matrix products of this process, and with which kernels. The reference BLAS is
// about 25 times slower than OpenBLAS, and an OpenBLAS that does not know the processor falls back to kernels
// of 2004, about 4 times slower; nothing else warns of it. Needs no torch. Any thread.
#pragma once

#include <dlfcn.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace dtrun::torch {

struct Blas {
  std::string name;  // "OpenBLAS", "reference BLAS", ...; "built into libtorch" when no file is mapped
  std::string path;  // empty when no file is mapped
  bool slow = false;
  std::string kernels;  // OpenBLAS: the processor it took this one for; else empty

  std::string text() const {
    const std::string with = kernels.empty() ? "" : ", " + kernels + " kernels";
    return path.empty() ? name + with : name + " (" + path + with + ")";
  }
};

// From the text of /proc/PID/maps.
inline Blas find_blas(std::string_view maps) {
  // Debian keeps the files of one alternative in a folder named after it, each with the generic file name.
  constexpr struct {
    std::string_view part;
    const char* name;
  } kKnown[] = {{"openblas", "OpenBLAS"}, {"libmkl_", "MKL"}, {"blis", "BLIS"}, {"atlas", "ATLAS"}};
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
    for (const auto& known : kKnown) {
      const std::string_view place = generic ? path : file;
      if (place.find(known.part) != place.npos) return {known.name, std::string(path), false, ""};
    }
    if (generic) reference = {"reference BLAS", std::string(path), true, ""};
  }
  return reference;
}

// The value of OPENBLAS_CORETYPE that would be faster than `kernels` on a processor with these features;
// empty when OpenBLAS chose well.
inline std::string better_kernels(std::string_view kernels, bool avx2, bool avx512) {
  if (kernels != "Prescott" && kernels != "Nehalem" && kernels != "Core2") return "";
  if (avx512) return "SKYLAKEX";
  return avx2 ? "HASWELL" : "";
}

// Of this process.
inline Blas blas_in_use() {
  std::ifstream maps("/proc/self/maps");
  std::ostringstream text;
  text << maps.rdbuf();
  Blas blas = find_blas(text.str());
  using CoreName = char* (*)();  // openblas_get_corename() of cblas.h
  if (const auto name = reinterpret_cast<CoreName>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"))) {
    blas.kernels = name();
  }
  return blas;
}

// What makes `blas` slow on this processor and what helps; empty when nothing does.
inline std::string why_slow(const Blas& blas) {
  if (blas.slow) {
    return "'" + blas.path +
           "' is the reference BLAS, about 25 times slower than OpenBLAS; apt-get install "
           "libopenblas0-pthread";
  }
#if defined(__x86_64__)
  const std::string better =
      better_kernels(blas.kernels, __builtin_cpu_supports("avx2"), __builtin_cpu_supports("avx512bw"));
  if (!better.empty()) {
    return "OpenBLAS does not know this processor and uses its " + blas.kernels +
           " kernels; OPENBLAS_CORETYPE=" + better +
           " in the environment or in job.env is several times faster";
  }
#endif
  return "";
}

}  // namespace dtrun::torch
