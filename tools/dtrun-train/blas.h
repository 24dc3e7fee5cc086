// Which BLAS library does the matrix products: the reference one is about 25 times slower
// than OpenBLAS, and nothing else tells.
#pragma once

#include <string>
#include <string_view>

namespace dtrun::train {

struct Blas {
  std::string name;  // "OpenBLAS", "reference BLAS", ...; "built into libtorch" when no file is mapped
  std::string path;  // empty when no file is mapped
  bool slow = false;
};

// From the text of /proc/PID/maps.
Blas FindBlas(std::string_view maps);
// Of this process. Any thread.
Blas LoadedBlas();

}  // namespace dtrun::train
