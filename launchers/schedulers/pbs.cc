// pbs: a job of PBS Professional, OpenPBS or Torque. PBS_NODEFILE has a line for each slot (qsub(1B): select
// with mpiprocs, or nodes with ppn).
//
// It has no connector: pbsdsh and pbs_tmrsh start a process by tm_spawn, which has no standard input for it.
#include <algorithm>

#include "launchers/schedulers/reading.h"

namespace dtrun::schedulers {
namespace {

class Pbs final : public sdk::Launcher {
 public:
  Pbs(const sdk::Host&, const sdk::Options&) {}

  sdk::Allocation FindHosts(const sdk::HostsQuery& query) override {
    Reading reading(query);
    const std::string sign =
        reading.Sign({"PBS_JOBID"}, "run dtrun from the script of qsub, or from qsub -I");
    std::vector<sdk::AllocatedHost> hosts = HostPerLine(reading, "PBS_NODEFILE");
    reading.End();
    CheckHosts(hosts, "PBS_NODEFILE", reading);
    CheckTorque(reading, hosts);
    reading.End();
    return OnceFor(std::move(hosts), sign, "hand it to qsub with -v DTRUN_CLUSTER_KEY");
  }

 private:
  // Torque also says what was asked for. A host that was asked for twice counts twice there.
  static void CheckTorque(Reading& reading, const std::vector<sdk::AllocatedHost>& hosts) {
    const auto nodes = reading.MaybeNumber("PBS_NUM_NODES", 1);
    const auto slots = reading.MaybeNumber("PBS_NP", 1);
    int lines = 0;
    for (const sdk::AllocatedHost& host : hosts) lines += host.slots.value_or(0);
    const std::string found = "PBS_NODEFILE has " + std::to_string(hosts.size()) + " hosts with " +
                              std::to_string(lines) + " slots";
    if (nodes && *nodes < static_cast<int>(hosts.size()))
      reading.Fail("PBS_NUM_NODES says " + std::to_string(*nodes) + ", but " + found);
    if (slots && *slots != lines) reading.Fail("PBS_NP says " + std::to_string(*slots) + ", but " + found);
  }
};

}  // namespace
}  // namespace dtrun::schedulers

DTRUN_SDK_PLUGIN(dtrun::schedulers::Pbs, .name = "pbs", .version = DTRUN_VERSION, .vendor = "dtrun",
                 .license = "Apache-2.0",
                 .summary = "the hosts of a job of PBS Professional, OpenPBS or Torque")
