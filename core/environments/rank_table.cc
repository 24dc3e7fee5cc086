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

std::string Endpoint(const std::string& address, const std::string& port) {
  const bool ipv6 = address.find(':') != std::string::npos;
  return ipv6 ? "[" + address + "]:" + port : address + ":" + port;
}

}  // namespace dtrun::environments
