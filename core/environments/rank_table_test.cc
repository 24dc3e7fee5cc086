#include <gtest/gtest.h>

#include "core/environments/dialect.h"

namespace dtrun::environments {
namespace {

TEST(PlaceOf, FindsTheHostOfARankInAnUnevenJob) {
  RankTable table;
  table.hosts = {{"a", "1.1.1.1", 0, 1}, {"b", "1.1.1.2", 1, 3}, {"c", "1.1.1.3", 4, 2}};
  EXPECT_EQ(table.world_size(), 6);
  const int hosts[] = {0, 1, 1, 1, 2, 2};
  const int local_ranks[] = {0, 0, 1, 2, 0, 1};
  for (int rank = 0; rank < 6; ++rank) {
    const Place place = PlaceOf(table, rank);
    EXPECT_EQ(place.host_index, hosts[rank]) << rank;
    EXPECT_EQ(place.local_rank, local_ranks[rank]) << rank;
    EXPECT_EQ(place.local_size, table.hosts[static_cast<std::size_t>(hosts[rank])].local_size) << rank;
  }
}

}  // namespace
}  // namespace dtrun::environments
