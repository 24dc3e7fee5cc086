// kubernetes: a pod of an Indexed Job or of a JobSet, which starts its container in every pod.
// JOB_COMPLETION_INDEX numbers the pods. Their host names are JOB-INDEX, of a JobSet
// JOBSET-REPLICATEDJOB-JOBINDEX-INDEX, and resolve with the headless service of the pod template's subdomain
// behind them ("Job with Pod-to-Pod Communication").
//
// Nothing in a pod says how many there are: the user does, by cluster.host_count.
#include <unistd.h>

#include "launchers/schedulers/reading.h"

namespace dtrun::schedulers {
namespace {

constexpr int kRankPort = 29500;  // of torch.distributed, where MASTER_PORT says no other

// "train-3.workers" of "train-3", from the pod's /etc/hosts, where the kubelet writes
// "10.0.0.7  train-3.workers.default.svc.cluster.local  train-3". Without a subdomain it writes the short
// name only.
std::string FullName(const std::string& name) {
  constexpr char kFile[] = "/etc/hosts";
  if (::access(kFile, F_OK) != 0) return name;
  for (const std::string& line : LinesOf(ReadFile(kFile))) {
    for (const std::string& word : WordsOf(line.substr(0, line.find('#')))) {
      if (word.starts_with(name + ".")) return word;
    }
  }
  return name;
}

class Kubernetes final : public sdk::Launcher {
 public:
  Kubernetes(const sdk::Host&, const sdk::Options&) {}

  sdk::Allocation FindHosts(const sdk::HostsQuery& query) override {
    Reading reading(query);
    const std::string sign = reading.Sign({"JOB_COMPLETION_INDEX"},
                                          "run dtrun in a Job with completionMode: Indexed, or in a JobSet");
    const int index = reading.Number(sign, 0, kMaxHosts - 1);
    reading.End();
    sdk::Allocation out;
    out.everywhere = true;
    out.own_index = index;
    out.root_address = Root(reading, index);
    out.rank_port = reading.MaybeNumber("MASTER_PORT", 1, kMaxPort).value_or(kRankPort);
    reading.End();
    out.evidence = sign;
    out.sharing = "give it to every pod from a Secret, by env with valueFrom.secretKeyRef";
    return out;
  }

 private:
  // The pod with the index 0: as MASTER_ADDR says, or by the pattern of its own name.
  static std::string Root(Reading& reading, int index) {
    if (const auto address = reading.Find("MASTER_ADDR")) return *address;
    const std::string name = reading.Text("HOSTNAME");
    const std::string ending = "-" + std::to_string(index);
    const bool fits = name.size() > ending.size() && name.ends_with(ending);
    if (!name.empty() && (!fits || !IsHostName(name))) {
      reading.Fail("HOSTNAME says " + name +
                   ", which does not end with the index of the pod, JOB_COMPLETION_INDEX=" +
                   std::to_string(index) + "; set MASTER_ADDR to the name of pod 0");
    }
    if (!fits) return {};
    const std::string rest = FullName(name).substr(name.size());
    return name.substr(0, name.size() - ending.size()) + "-0" + rest;
  }
};

}  // namespace
}  // namespace dtrun::schedulers

DTRUN_SDK_PLUGIN(dtrun::schedulers::Kubernetes, .name = "kubernetes", .version = DTRUN_VERSION,
                 .vendor = "dtrun", .license = "Apache-2.0",
                 .summary = "the pods of an Indexed Job or a JobSet of Kubernetes")
