// gridengine: a job of Grid Engine (Son of, Univa, Altair, Open) in a parallel environment. PE_HOSTFILE has
// lines "host slots queue processors" (sge_pe(5)); a host may have several queues. qrsh -inherit starts a
// process on another host of the job, where the parallel environment has control_slaves (qsub(1)).
#include "launchers/schedulers/reading.h"

namespace dtrun::schedulers {
namespace {

class GridEngine final : public sdk::Launcher {
 public:
  GridEngine(const sdk::Host&, const sdk::Options&) {}

  sdk::Allocation FindHosts(const sdk::HostsQuery& query) override {
    Reading reading(query);
    const std::string sign =
        reading.Sign({"PE_HOSTFILE"}, "run dtrun from the script of qsub -pe, in a parallel environment");
    const std::string text = reading.FileOf(sign);
    reading.End();
    SlotList list;
    int all = 0;
    for (const std::string& line : LinesOf(text)) {
      const std::vector<std::string> words = WordsOf(line);
      const auto slots = words.size() < 2 ? std::nullopt : NumberOf(words[1]);
      if (!slots || *slots > kMaxSlots) {
        reading.Fail("PE_HOSTFILE: '" + line + "' is not \"host slots queue processors\"");
        break;
      }
      list.Add(words[0], *slots);
      all += *slots;
    }
    reading.End();
    std::vector<sdk::AllocatedHost> hosts = list.Take();
    CheckHosts(hosts, sign, reading);
    reading.Expect("NSLOTS", all, "PE_HOSTFILE has " + std::to_string(all) + " slots");
    reading.Expect("NHOSTS", static_cast<int>(hosts.size()),
                   "PE_HOSTFILE has " + std::to_string(hosts.size()) + " hosts");
    reading.End();
    return OnceFor(std::move(hosts), sign, "hand it to qsub with -v DTRUN_CLUSTER_KEY");
  }

  std::vector<sdk::ConnectCommand> Connect(const sdk::ConnectQuery& query) override {
    if (!query.Variable("JOB_ID") || !query.Variable("PE_HOSTFILE"))
      throw sdk::Failure(DTRUN_FAILED_PRECONDITION,
                         "qrsh -inherit starts processes in a job with a parallel environment, and JOB_ID or "
                         "PE_HOSTFILE is unset; run dtrun from qsub -pe");
    return OneEach(query, {"qrsh", "-inherit"});
  }
};

}  // namespace
}  // namespace dtrun::schedulers

DTRUN_SDK_PLUGIN(dtrun::schedulers::GridEngine, .name = "gridengine", .version = DTRUN_VERSION,
                 .vendor = "dtrun", .license = "Apache-2.0",
                 .summary = "the hosts of a parallel job of Grid Engine, reached by qrsh -inherit")
