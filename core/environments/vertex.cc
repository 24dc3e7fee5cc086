// Vertex AI, custom containers: a pool of one chief and a pool of workers, each host a
// member. Left out: "job", the text of a request to the service, and "open_ports".

#include "core/base/endpoint.h"
#include "core/base/json.h"
#include "core/environments/contracts.h"

namespace dtrun::environments {

Contract WriteVertex(const RankTable& table, int rank) {
  const int own = PlaceOf(table, rank).host_index;
  Json chief = Json::array(), workers = Json::array();
  for (const TableHost& host : table.hosts) {
    const std::string endpoint =
        EndpointText(host.address, table.task_ports[static_cast<std::size_t>(host.first_rank)]);
    (chief.empty() ? chief : workers).push_back(endpoint);
  }
  const int index = own == 0 ? 0 : own - 1;
  Json pools = {{"workerpool0", chief}}, cluster = {{"chief", chief}};
  if (!workers.empty()) {
    pools["workerpool1"] = workers;
    cluster["worker"] = workers;
  }
  const Json spec = {{"cluster", pools},
                     {"environment", "cloud"},
                     {"task", {{"type", own == 0 ? "workerpool0" : "workerpool1"}, {"index", index}}}};
  const Json config = {{"cluster", cluster},
                       {"environment", "cloud"},
                       {"task", {{"type", own == 0 ? "chief" : "worker"}, {"index", index}}}};
  Contract out = WriteGcp(table, rank);
  out.set["CLUSTER_SPEC"] = JsonLine(spec);
  out.set["TF_CONFIG"] = JsonLine(config);
  return out;
}

}  // namespace dtrun::environments
