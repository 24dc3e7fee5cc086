// TensorFlow: tensorflow/python/distribute/cluster_resolver/tfconfig_cluster_resolver.py. The evaluator has
// its own task and is in no cluster.

#include "core/base/endpoint.h"
#include "core/base/json.h"
#include "core/environments/contracts.h"

namespace dtrun::environments {

Contract WriteTfConfig(const RankTable& table, int rank) {
  Json cluster = Json::object();
  std::string own_role;
  int own_index = 0;
  std::map<std::string, int> counts;
  for (int other = 0; other < table.world_size(); ++other) {
    const auto index = static_cast<std::size_t>(other);
    const std::string role = table.roles.empty() ? "worker" : table.roles[index];
    if (other == rank) {
      own_role = role;
      own_index = counts[role];
    }
    ++counts[role];
    if (role == "evaluator") continue;
    const TableHost& host = table.hosts[static_cast<std::size_t>(PlaceOf(table, other).host_index)];
    cluster[role].push_back(EndpointText(host.address, table.task_ports[index]));
  }
  const Json config = {
      {"cluster", cluster}, {"task", {{"type", own_role}, {"index", own_index}}}, {"environment", "cloud"}};
  return {{{"TF_CONFIG", JsonLine(config)}}, {}};
}

}  // namespace dtrun::environments
