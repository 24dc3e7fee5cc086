// mpirun: an installed Open MPI's or MPICH's mpirun starts the ranks, with its mapping and
// binding; dtrun starts mpirun, and the daemons that it needs on other hosts.
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dtrun/plugin.hpp"
#include "launchers/mpirun/family.h"

namespace {

using dtrun::mpirun::Family;
using dtrun::sdk::Job;
using Words = std::vector<std::string>;

// The verb of dtrun that an mpirun takes for a remote shell.
constexpr char kShell[] = "mpi-shell";

constexpr const char* kFamilies[] = {"auto", "open-mpi", "mpich", "intel"};
constexpr const char* kProcesses[] = {"rank", "host"};

// What the shim of dtrun expands for each rank; core would do it once for all.
constexpr std::string_view kPerRank[] = {"${RANK}", "${LOCAL_RANK}", "${DTRUN_RANK}", "${DTRUN_LOCAL_RANK}"};

std::string KeptForTheRank(std::string text) {
  for (const std::string_view name : kPerRank) {
    for (std::size_t at = text.find(name); at != std::string::npos;
         at = text.find(name, at + name.size() + 1)) {
      if (at == 0 || text[at - 1] != '$') text.insert(at, "$");
    }
  }
  return text;
}

class Mpirun final : public dtrun::sdk::Launcher {
 public:
  Mpirun(const dtrun::sdk::Host&, const dtrun::sdk::Options& options)
      : program_(options.String("program")),
        wanted_(options.EnumIndex("family")),
        per_host_(options.EnumIndex("processes") == 1),
        arguments_(options.List("arguments")) {}

  void Plan(const Job& job, const dtrun::sdk::PlanSink& sink) override {
    if (wanted_ > 0) family_ = static_cast<Family>(wanted_ - 1);
    if (!family_) family_ = dtrun::mpirun::RecogniseFamily(program_, job.Inherited("PATH").value_or(""));
    CheckAddress(job);
    const bool own_threads = job.Inherited("OMP_NUM_THREADS").has_value();
    const std::string hosts = std::to_string(job.host_count());
    for (std::uint64_t index = 0; index < job.host_count(); ++index) {
      const dtrun_job_host host = job.host(index);
      dtrun::sdk::Process process;
      process.host_index = static_cast<int>(index);
      process.rank = host.first_rank;
      process.rank_count = host.local_size;
      process.argv = index == 0 ? Command(job) : Words{job.program(), "mpi-daemon"};
      process.env = {{"NODE_RANK", std::to_string(index)},
                     {"NNODES", hosts},
                     {"MASTER_ADDR", job.master_addr()},
                     {"MASTER_PORT", job.master_port()}};
      const std::string ranks = std::to_string(host.local_size);
      if (per_host_) {
        process.env.insert(
            process.env.end(),
            {{"NPROC_PER_NODE", ranks}, {"GROUP_RANK", std::to_string(index)}, {"GROUP_WORLD_SIZE", hosts}});
      } else {
        process.env.insert(process.env.end(), {{"WORLD_SIZE", std::to_string(job.world_size())},
                                               {"LOCAL_WORLD_SIZE", ranks},
                                               {"DTRUN_RANK_OUTPUTS", "1"}});
      }
      if (job.host_count() > 1) process.env.emplace_back("DTRUN_MPI_HOSTS", HostNames(job));
      if (job.host_count() > 1 && index == 0 && Is(Family::kMpich))
        process.env.emplace_back("HYDRA_LAUNCHER_EXTRA_ARGS", kShell);
      if (job.host_count() > 1 && index == 0 && Is(Family::kIntel))
        process.env.emplace_back("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", kShell);
      if (Is(Family::kIntel)) AddIntelBinding(job, &process);
      if (!own_threads) {
        process.env.emplace_back("OMP_NUM_THREADS",
                                 std::to_string(std::max(1, host.cores / host.local_size)));
      }
      // Waiting ranks of Open MPI burn a core each unless they are told that there are not enough.
      constexpr char kYield[] = "OMPI_MCA_mpi_yield_when_idle";
      if (Is(Family::kOpenMpi) && host.cores < host.local_size && !job.Inherited(kYield))
        process.env.emplace_back(kYield, "1");
      sink.Add(process);
    }
    if (!own_threads) {
      sink.Note("OMP_NUM_THREADS is each host's cores / its ranks; set it in job.env to choose another");
    }
    if (AsRoot()) sink.Note("you are root, which Open MPI's mpirun refuses: it gets --allow-run-as-root");
  }

 private:
  // Hydra's processes open IPv4 sockets alone, and take what stands behind a colon for the port.
  void CheckAddress(const Job& job) const {
    const std::string address(job.master_addr());
    if (!Is(Family::kMpich) || job.host_count() == 1 || address.find(':') == std::string::npos) return;
    throw dtrun::sdk::Failure(
        DTRUN_UNSUPPORTED,
        "the hosts reach each other over IPv6 (" + address + "), and " + program_ +
            " (Hydra) over IPv4 alone; take launcher.name = \"per-process\", which starts MPICH's "
            "programs too, or Open MPI's mpirun");
  }

  // The whole command line of mpirun.
  Words Command(const Job& job) const {
    if (Is(Family::kIntel)) return Intel(job);
    Words words = {program_};
    const std::string all = std::to_string(per_host_ ? static_cast<int>(job.host_count()) : job.world_size());
    if (Is(Family::kOpenMpi)) {
      AddOpenMpi(job, all, &words);
    } else {
      AddHydra(job, all, &words);
    }
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    AddRank(job, &words);
    return words;
  }

  // What mpirun starts for each rank, or host.
  void AddRank(const Job& job, Words* words) const {
    words->insert(words->end(), {job.program(), "mpi-rank"});
    if (per_host_) words->push_back("--host");
    for (const std::string& word : job.argv()) words->push_back(per_host_ ? word : KeptForTheRank(word));
  }

  // Its -hosts knows no counts, so each host has a part of the command line.
  Words Intel(const Job& job) const {
    Words words = {program_};
    if (job.host_count() > 1) AddRemoteShell(job, &words);
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    for (std::uint64_t i = 0; i < job.host_count(); ++i) {
      const dtrun_job_host host = job.host(i);
      if (i > 0) words.push_back(":");
      words.insert(words.end(), {"-host", job.host_count() == 1 ? "localhost" : host.name, "-n",
                                 std::to_string(per_host_ ? 1 : host.local_size)});
      AddRank(job, &words);
    }
    return words;
  }

  // It binds by itself, and is told otherwise by variables alone.
  void AddIntelBinding(const Job& job, dtrun::sdk::Process* process) const {
    const std::string domain = BindTo(job);
    const char* const name = domain == "none" ? "I_MPI_PIN" : "I_MPI_PIN_DOMAIN";
    if (job.Inherited("I_MPI_PIN") || job.Inherited("I_MPI_PIN_DOMAIN")) return;
    process->env.emplace_back(name, domain == "none" ? "off" : domain);
  }

  // REQUIRES: Plan has found it out.
  bool Is(Family family) const { return family_ == family; }
  bool AsRoot() const { return Is(Family::kOpenMpi) && ::geteuid() == 0; }

  void AddOpenMpi(const Job& job, const std::string& all, Words* to) const {
    const auto add = [to](std::initializer_list<std::string> more) { to->insert(to->end(), more); };
    add({"-np", all, "--host", HostSlots(job)});
    if (!Given("map-by") && !Given("rankfile")) add({"--map-by", MapBy(job)});
    if (!Given("bind-to")) add({"--bind-to", BindTo(job)});
    if (AsRoot()) add({"--allow-run-as-root"});  // the user who starts dtrun as root has decided that
    if (job.host_count() == 1) return;
    // The daemons stay children of dtrun's agents and end with them.
    add({"--leave-session-attached", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent",
         job.program() + " " + kShell, "--mca", "orte_keep_fqdn_hostnames", "1"});
  }

  void AddHydra(const Job& job, const std::string& all, Words* to) const {
    to->insert(to->end(), {"-n", all, "-hosts", HostSlots(job)});
    if (!Given("bind-to")) to->insert(to->end(), {"-bind-to", BindTo(job)});
    if (job.host_count() > 1) AddRemoteShell(job, to);
  }

  // A Hydra's proxies are started as Open MPI's daemons are, by a "rsh" with kShell as its first argument. A
  // rank inherits from the proxy of its host, not from here.
  static void AddRemoteShell(const Job& job, Words* to) {
    to->insert(to->end(), {"-genvnone", "-launcher", "rsh", "-launcher-exec", job.program(), "-localhost",
                           job.master_addr()});
  }

  // Whether the user's own arguments choose this.
  bool Given(std::string_view name) const {
    return std::any_of(arguments_.begin(), arguments_.end(), [&](const std::string& argument) {
      const std::size_t dashes = argument.find_first_not_of('-');
      return dashes != 0 && dashes != std::string::npos && std::string_view(argument).substr(dashes) == name;
    });
  }

  std::string HostSlots(const Job& job) const {
    if (job.host_count() == 1) return "localhost:" + std::to_string(per_host_ ? 1 : job.world_size());
    std::string out;
    for (std::uint64_t i = 0; i < job.host_count(); ++i) {
      const dtrun_job_host host = job.host(i);
      const std::string name(host.name);
      const bool v6 = name.find(':') != std::string::npos;
      out += (i == 0 ? "" : ",") + (v6 ? "[" + name + "]" : name) + ":" +
             std::to_string(per_host_ ? 1 : host.local_size);
    }
    return out;
  }

  static std::string HostNames(const Job& job) {
    std::string out;
    for (std::uint64_t i = 0; i < job.host_count(); ++i)
      out += (i == 0 ? "" : ",") + std::string(job.host(i).name);
    return out;
  }

  // Cores for each rank on every host; 0: there are not enough.
  static int CoresPerRank(const Job& job) {
    int least = job.host(0).cores;
    for (std::uint64_t i = 0; i < job.host_count(); ++i) {
      least = std::min(least, job.host(i).cores / job.host(i).local_size);
    }
    return least;
  }

  std::string MapBy(const Job& job) const {
    const int cores = per_host_ ? 0 : CoresPerRank(job);
    if (cores > 0 && !Given("bind-to")) {
      if (job.bind() == "compact") return "slot:PE=" + std::to_string(cores);
      if (job.bind() == "spread") return "numa:PE=" + std::to_string(cores);
    }
    return "slot";
  }

  // job.bind in mpirun's words. What "auto" means has been decided for all ranks of a host together.
  std::string BindTo(const Job& job) const {
    if (per_host_ || CoresPerRank(job) == 0) return "none";
    if (job.bind() == "compact" || job.bind() == "spread") return "core";
    if (job.bind() == "per-numa") return "numa";
    if (job.bind() == "per-socket") return "socket";
    return "none";
  }

  const std::string program_;
  const int wanted_;  // index into kFamilies
  std::optional<Family> family_;
  const bool per_host_;
  const Words arguments_;
};

constexpr dtrun_option kOptions[] = {
    dtrun::sdk::Option("program", DTRUN_TYPE_STRING, "mpirun", "mpirun or mpiexec that starts the ranks"),
    dtrun::sdk::Option("family", DTRUN_TYPE_ENUM, "auto", "which MPI the program belongs to")
        .Long("\"mpich\" is any Hydra but Intel MPI's, which is \"intel\". \"auto\" looks at the name of the "
              "file and, if that does not decide, at what the program prints for --version.")
        .Choices(kFamilies),
    dtrun::sdk::Option("processes", DTRUN_TYPE_ENUM, "rank", "what mpirun starts")
        .Long("\"rank\" is a process for each rank; \"host\" is a process for each host, and the program "
              "starts "
              "the ranks there, as with the per-node launcher.")
        .Choices(kProcesses),
    dtrun::sdk::Option("arguments", DTRUN_TYPE_LIST, "",
                       "more arguments for mpirun, such as [\"--mca\", \"btl\", \"tcp,self\"]"),
};

}  // namespace

DTRUN_SDK_PLUGIN(Mpirun, .name = "mpirun", .version = DTRUN_VERSION, .vendor = "dtrun",
                 .license = "Apache-2.0",
                 .summary = "an installed mpirun starts the ranks, with its mapping and binding",
                 .options = kOptions, .option_count = std::size(kOptions))
