#include "core/environments/rank_table.h"

namespace dtrun::environments {

Place PlaceOf(const RankTable& table, int rank) {
  int index = 0;
  while (rank >= table.hosts[static_cast<std::size_t>(index)].first_rank +
                     table.hosts[static_cast<std::size_t>(index)].local_size) {
    ++index;
  }
  const TableHost& host = table.hosts[static_cast<std::size_t>(index)];
  return {rank, rank - host.first_rank, index, host.local_size};
}

}  // namespace dtrun::environments
