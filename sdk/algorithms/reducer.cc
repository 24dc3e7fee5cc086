#include "reducer.h"

namespace dtrun::algorithms {
namespace {

template <class Number>
void DivideNumbers(void* data, std::size_t count, int ranks) {
  auto* const numbers = static_cast<Number*>(data);
  const auto divisor = static_cast<Number>(ranks);
  for (std::size_t i = 0; i < count; ++i) numbers[i] /= divisor;
}

}  // namespace

void Divide(void* data, std::size_t count, std::int32_t dtype, int ranks) {
  switch (dtype) {
    case DTRUN_FLOAT32: return DivideNumbers<float>(data, count, ranks);
    case DTRUN_FLOAT64: return DivideNumbers<double>(data, count, ranks);
    case DTRUN_COMPLEX64: return DivideNumbers<float>(data, 2 * count, ranks);
    default: return DivideNumbers<double>(data, 2 * count, ranks);
  }
}

}  // namespace dtrun::algorithms
