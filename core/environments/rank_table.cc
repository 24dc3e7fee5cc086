#include "core/environments/rank_table.h"

#include <algorithm>
#include <iterator>

namespace dtrun::environments {

Place PlaceOf(const RankTable& table, int rank) {
  const auto after = std::ranges::upper_bound(table.hosts, rank, {}, &TableHost::first_rank);
  const auto host = std::prev(after);
  return {rank, rank - host->first_rank, static_cast<int>(host - table.hosts.begin()), host->local_size};
}

}  // namespace dtrun::environments
