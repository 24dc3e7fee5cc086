#include "big_type.h"

#include <utility>

namespace dtrun::mpi_plugin {

BigType::BigType(const Api& api, MPI_Datatype element, std::size_t width, std::uint64_t count,
                 std::uint64_t limit)
    : api_(api), count_(static_cast<int>(count <= limit ? count : 1)), type_(element) {
  if (count <= limit) return;
  // Whole chunks, and the rest behind them.
  MPI_Datatype chunk;
  api.Check(api.type_contiguous(static_cast<int>(limit), element, &chunk), "MPI_Type_contiguous");
  const int lengths[] = {static_cast<int>(count / limit), static_cast<int>(count % limit)};
  const MPI_Aint places[] = {0, static_cast<MPI_Aint>((count - count % limit) * width)};
  const MPI_Datatype types[] = {chunk, element};
  api.Check(api.type_create_struct(2, lengths, places, types, &type_), "MPI_Type_create_struct");
  own_ = true;
  api.Check(api.type_commit(&type_), "MPI_Type_commit");
  api.Check(api.type_free(&chunk), "MPI_Type_free");
}

BigType::BigType(BigType&& other) noexcept
    : api_(other.api_), count_(other.count_), type_(other.type_), own_(std::exchange(other.own_, false)) {}

BigType::~BigType() {
  if (own_) api_.type_free(&type_);
}

}  // namespace dtrun::mpi_plugin
