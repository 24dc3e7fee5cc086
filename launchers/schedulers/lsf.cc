// lsf: a job of IBM Spectrum LSF. LSB_DJOB_HOSTFILE has a line for each slot; LSB_MCPU_HOSTS says the same as
// "hostA 4 hostB 2", and is what older releases and short jobs have (Environment variable reference). blaunch
// starts a process on another host of the job; with -no-shell, since 9.1.2, it hands the words on as they are
// (blaunch(8)), so that blanks and quotes in paths stay.
#include <algorithm>

#include "launchers/schedulers/reading.h"

namespace dtrun::schedulers {
namespace {

std::vector<sdk::AllocatedHost> OfPairs(Reading& reading) {
  SlotList hosts;
  const std::vector<std::string> words = WordsOf(reading.Text("LSB_MCPU_HOSTS"));
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const auto slots = i + 1 < words.size() ? NumberOf(words[i + 1]) : std::nullopt;
    if (slots) {
      hosts.Add(words[i], *slots);
      continue;
    }
    reading.Fail("LSB_MCPU_HOSTS: host '" + words[i] + "' has no number of slots after it");
    break;
  }
  return hosts.Take();
}

bool SameHosts(const std::vector<sdk::AllocatedHost>& a, const std::vector<sdk::AllocatedHost>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.name == other.name && one.slots == other.slots;
  });
}

class Lsf final : public sdk::Launcher {
 public:
  Lsf(const sdk::Host&, const sdk::Options&) {}

  sdk::Allocation FindHosts(const sdk::HostsQuery& query) override {
    Reading reading(query);
    const std::string sign =
        reading.Sign({"LSB_JOBID"}, "run dtrun from the script of bsub, or from bsub -Is");
    const bool has_file = reading.Find("LSB_DJOB_HOSTFILE").has_value();
    std::vector<sdk::AllocatedHost> hosts =
        has_file ? HostPerLine(reading, "LSB_DJOB_HOSTFILE") : OfPairs(reading);
    reading.End();
    const std::string source = has_file ? "LSB_DJOB_HOSTFILE" : "LSB_MCPU_HOSTS";
    CheckHosts(hosts, source, reading);
    if (has_file && reading.Find("LSB_MCPU_HOSTS") && !SameHosts(hosts, OfPairs(reading))) {
      reading.Fail("LSB_MCPU_HOSTS='" + *reading.Find("LSB_MCPU_HOSTS") +
                   "' has other hosts or slots than LSB_DJOB_HOSTFILE='" + *reading.Find(source) + "'");
    }
    reading.End();
    return OnceFor(std::move(hosts), sign, "hand it to bsub with -env \"all, DTRUN_CLUSTER_KEY\"");
  }

  std::vector<sdk::ConnectCommand> Connect(const sdk::ConnectQuery& query) override {
    if (!query.Variable("LSB_JOBID"))
      throw sdk::Failure(DTRUN_FAILED_PRECONDITION,
                         "blaunch starts processes in a job, and LSB_JOBID is unset; run dtrun from bsub");
    return OneEach(query, {"blaunch"}, {"-no-shell"});
  }
};

}  // namespace
}  // namespace dtrun::schedulers

DTRUN_SDK_PLUGIN(dtrun::schedulers::Lsf, .name = "lsf", .version = DTRUN_VERSION, .vendor = "dtrun",
                 .license = "Apache-2.0",
                 .summary = "the hosts of a job of IBM Spectrum LSF, reached by blaunch")
