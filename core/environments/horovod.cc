// Horovod: horovod/runner/gloo_run.py, horovod/common/gloo/gloo_context.cc.
#include "core/environments/horovod.h"

#include "core/environments/contracts.h"

namespace dtrun::environments {

std::map<std::string, std::size_t> HorovodScopes(const RankTable& table) {
  std::map<std::string, std::size_t> members;
  members["global"] = static_cast<std::size_t>(table.world_size());
  for (const TableHost& host : table.hosts) {
    members["local_" + host.name] = static_cast<std::size_t>(host.local_size);
    for (int local = 0; local < host.local_size; ++local) ++members["cross_" + std::to_string(local)];
  }
  return members;
}

Contract WriteHorovod(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  // The index of this host among the hosts with a rank of this local number.
  int cross_rank = 0, cross_size = 0;
  for (int host = 0; host < table.host_count(); ++host) {
    if (table.hosts[static_cast<std::size_t>(host)].local_size <= place.local_rank) continue;
    if (host < place.host_index) ++cross_rank;
    ++cross_size;
  }
  Contract out;
  out.set = {
      {"HOROVOD_HOSTNAME", table.hosts[static_cast<std::size_t>(place.host_index)].name},
      {"HOROVOD_RANK", std::to_string(rank)},
      {"HOROVOD_SIZE", std::to_string(table.world_size())},
      {"HOROVOD_LOCAL_RANK", std::to_string(place.local_rank)},
      {"HOROVOD_LOCAL_SIZE", std::to_string(place.local_size)},
      {"HOROVOD_CROSS_RANK", std::to_string(cross_rank)},
      {"HOROVOD_CROSS_SIZE", std::to_string(cross_size)},
  };

  if (!table.rendezvous_address.empty()) {
    out.set["HOROVOD_CONTROLLER"] = "gloo";
    out.set["HOROVOD_CPU_OPERATIONS"] = "gloo";
    out.set["HOROVOD_GLOO_RENDEZVOUS_ADDR"] = table.rendezvous_address;
    out.set["HOROVOD_GLOO_RENDEZVOUS_PORT"] = table.rendezvous_port;
  }
  out.fallback = {{"PYTHONUNBUFFERED", "1"}};
  return out;
}

}  // namespace dtrun::environments
