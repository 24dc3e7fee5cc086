// Which BLAS library does the matrix products, and with which kernels. The reference BLAS is
// about 25 times slower than OpenBLAS, and an OpenBLAS that does not know the processor
// falls back to kernels of 2004, about 4 times slower; nothing else tells.
#pragma once

#include <string>
#include <string_view>

namespace dtrun::train {

struct Blas {
  std::string name;  // "OpenBLAS", "reference BLAS", ...; "built into libtorch" when no file is mapped
  std::string path;  // empty when no file is mapped
  bool slow = false;
  std::string kernels;  // OpenBLAS: the processor it took this one for; else empty
};

// From the text of /proc/PID/maps.
Blas FindBlas(std::string_view maps);
// The value of OPENBLAS_CORETYPE that would be faster than `kernels` on a processor with these
// features; empty when OpenBLAS chose well.
std::string BetterKernels(std::string_view kernels, bool avx2, bool avx512);
// Of this process. Any thread.
Blas LoadedBlas();

}  // namespace dtrun::train
