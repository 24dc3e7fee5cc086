// sagemaker: a training job of Amazon SageMaker, which starts its container on every host. The training
// toolkit sets SM_HOSTS, SM_CURRENT_HOST and SM_NUM_GPUS; without it the same is in
// /opt/ml/input/config/resourceconfig.json
// ("How Amazon SageMaker Provides Training Information"). Hosts are numbered in the order of SM_HOSTS.
#include <unistd.h>

#include <algorithm>

#include "launchers/schedulers/reading.h"

namespace dtrun::schedulers {
namespace {

constexpr char kFile[] = "/opt/ml/input/config/resourceconfig.json";
constexpr int kRankPort = 7777;  // the training toolkit's for torch.distributed

struct Cluster {
  std::string source;
  std::vector<std::string> hosts;
  std::string current;
};

Cluster OfVariables(Reading& reading) {
  Cluster out{"SM_HOSTS", {}, reading.Text("SM_CURRENT_HOST")};
  const std::string text = reading.Text("SM_HOSTS");
  if (auto hosts = ReadHostList(text)) {
    out.hosts = *std::move(hosts);
  } else if (!text.empty()) {
    reading.Fail("SM_HOSTS='" + text + "' is not of the form [\"algo-1\",\"algo-2\"]");
  }
  return out;
}

// Without the toolkit a job's environment is that of any container: the file alone says where this is.
Cluster OfFile(Reading& reading) {
  if (::access(kFile, F_OK) != 0) {
    throw sdk::Failure(DTRUN_NOT_FOUND, std::string("SM_HOSTS is unset, and there is no ") + kFile +
                                            "; run dtrun in a training job");
  }
  auto config = ReadResourceConfig(ReadFile(kFile));
  if (config) return {kFile, std::move(config->hosts), std::move(config->current_host)};
  reading.Fail(std::string(kFile) +
               " is not of the form {\"current_host\": \"algo-1\", \"hosts\": [\"algo-1\"]}");
  return {kFile, {}, {}};
}

class SageMaker final : public sdk::Launcher {
 public:
  SageMaker(const sdk::Host&, const sdk::Options&) {}

  sdk::Allocation FindHosts(const sdk::HostsQuery& query) override {
    Reading reading(query);
    const bool toolkit = reading.Find("SM_HOSTS") || reading.Find("SM_CURRENT_HOST");
    const Cluster cluster = toolkit ? OfVariables(reading) : OfFile(reading);
    reading.End();
    sdk::Allocation out;
    for (const std::string& name : cluster.hosts) out.hosts.push_back({name});
    CheckHosts(out.hosts, cluster.source, reading);
    const auto own = std::find(cluster.hosts.begin(), cluster.hosts.end(), cluster.current);
    if (own == cluster.hosts.end())
      reading.Fail("this host is '" + cluster.current + "', which is not in " + cluster.source);
    const auto gpus = reading.MaybeNumber("SM_NUM_GPUS", 0);
    reading.End();
    out.everywhere = true;
    out.own_index = static_cast<int>(own - cluster.hosts.begin());
    out.root_address = cluster.hosts.front();
    out.rank_port = kRankPort;
    if (gpus && *gpus > 0) out.processes_per_host = std::to_string(*gpus);
    out.evidence = cluster.source;
    out.sharing = "write it under Environment of the training job";
    return out;
  }
};

}  // namespace
}  // namespace dtrun::schedulers

DTRUN_SDK_PLUGIN(dtrun::schedulers::SageMaker, .name = "sagemaker", .version = DTRUN_VERSION,
                 .vendor = "dtrun", .license = "Apache-2.0",
                 .summary = "the hosts of a training job of Amazon SageMaker")
