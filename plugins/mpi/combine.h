// Reductions that MPI lacks, as operations of MPI: booleans, 16-bit floats, minima and maxima
// that keep NaN, and sums of small integers that wrap.
//
// Made once MPI runs, kept until the process ends; any thread.
#pragma once

#include <array>
#include <optional>

#include "dtrun/plugin/names.hpp"
#include "library.h"

namespace dtrun::mpi_plugin {

// How MPI carries out a reduction of one element type.
struct Reduction {
  MPI_Datatype type;
  MPI_Op op;
  // 16-bit floats with partial results that would be rounded: to be carried as float32.
  bool widen = false;
};

class Combiners {
 public:
  explicit Combiners(const Api& api);

  // Whether MPI does it by itself: no function of ours, and nothing before or after it. Needs no MPI.
  static bool IsNative(std::int32_t dtype, std::int32_t reduce);
  // REQUIRES kernels::Supports(dtype, reduce). AVG and PREMUL_SUM are sums here.
  Reduction Find(std::int32_t dtype, std::int32_t reduce) const;
  // The type that moves elements of this width: 1, 2, 4, 8 or 16 bytes.
  MPI_Datatype Mover(std::size_t width) const;

 private:
  const Api& api_;
  std::array<std::array<std::optional<MPI_Op>, sdk::kReductionEnd>, sdk::kTypeEnd> own_;
};

}  // namespace dtrun::mpi_plugin
