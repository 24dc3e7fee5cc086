// slurm: the hosts of an allocation, srun as the way to them, and ranks that are processes of their own with
// the environment that srun gives a task (srun(1), "OUTPUT ENVIRONMENT VARIABLES") and the env:// variables.
#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "launchers/schedulers/reading.h"

namespace dtrun::schedulers {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// Counts per host under `name`; empty when unset or wrong.
std::vector<int> Counts(Reading& reading, const std::string& name, std::size_t hosts,
                        const std::string& list) {
  const auto text = reading.Find(name);
  if (!text) return {};
  std::vector<int> counts;
  try {
    counts = ExpandCounts(*text);
  } catch (const sdk::Failure& failure) {
    reading.Fail(name + ": " + failure.what());
    return {};
  }
  if (counts.size() != hosts) {
    reading.Fail(list + " says " + std::to_string(hosts) + " hosts, " + name + "='" + *text + "' says " +
                 std::to_string(counts.size()));
    return {};
  }
  if (std::any_of(counts.begin(), counts.end(), [](int count) { return count < 1 || count > kMaxSlots; })) {
    reading.Fail(name + "='" + *text + "' has a count that is not from 1 to " + std::to_string(kMaxSlots));
    return {};
  }
  return counts;
}

// Tasks that the user asked for; without such a request the processors of each host.
std::vector<int> Slots(Reading& reading, std::size_t hosts, const std::string& list) {
  std::vector<int> tasks = Counts(reading, "SLURM_TASKS_PER_NODE", hosts, list);
  const auto most = reading.MaybeNumber("SLURM_NTASKS_PER_NODE", 1);
  if (most && std::any_of(tasks.begin(), tasks.end(), [&](int count) { return count > *most; }))
    reading.Disagree("SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE");
  if (!tasks.empty()) return tasks;
  if (most) return std::vector<int>(hosts, *most);
  return Counts(reading, "SLURM_JOB_CPUS_PER_NODE", hosts, list);
}

void ReadStep(Reading& reading, sdk::Allocation* to) {
  const auto tasks = Counts(reading, "SLURM_STEP_TASKS_PER_NODE", to->hosts.size(), "SLURM_STEP_NODELIST");
  if (std::any_of(tasks.begin(), tasks.end(), [](int count) { return count != 1; })) {
    reading.Fail("SLURM_STEP_TASKS_PER_NODE says " + *reading.Find("SLURM_STEP_TASKS_PER_NODE") +
                 " tasks, and dtrun starts the ranks itself; start it once per host: srun "
                 "--ntasks-per-node=1 dtrun");
  }
  const int index = reading.Number("SLURM_NODEID", 0);
  if (index >= static_cast<int>(to->hosts.size())) {
    reading.Fail("SLURM_NODEID says " + std::to_string(index) + ", SLURM_STEP_NODELIST has " +
                 std::to_string(to->hosts.size()) + " hosts");
  }
  to->everywhere = true;
  to->own_index = index;
  // Slurm has no rule for a port that all tasks know; Lightning's is this one.
  if (const auto job = reading.MaybeNumber("SLURM_JOB_ID", 1)) to->rank_port = 15000 + *job % 10000;
}

// Whether this is one of the tasks of a step. The shell that salloc or srun --pty gives to a user stands in a
// step of its own, of one host, and speaks for the whole allocation (SLURM_INTERACTIVE_STEP in slurm.h).
bool InStep(const Reading& reading) {
  constexpr char kInteractive[] = "4294967290";
  return reading.Find("SLURM_STEP_NODELIST") && reading.Find("SLURM_STEP_ID") != kInteractive;
}

// srun with a PMI plugin sets PMI_RANK to its own task's number. Any other PMI_RANK in an allocation is that
// of an mpiexec, which starts processes of its own.
bool IsOwnPmi(const Reading& reading) {
  const auto task = reading.Find("SLURM_PROCID");
  return reading.Find("SLURM_STEP_NODELIST") && task && task == reading.Find("PMI_RANK");
}

// The names in SLURM_HOSTFILE, one for each task, in the order of tasks (srun(1), --distribution=arbitrary).
std::vector<std::string> HostfileNames(Reading& reading) {
  std::vector<std::string> names;
  const auto tasks = reading.MaybeNumber("SLURM_NTASKS", 1);
  for (std::string line : LinesOf(reading.FileOf("SLURM_HOSTFILE"))) {
    for (const std::string& word : WordsOf(line.substr(0, line.find('#')))) {
      try {
        for (std::string& name : ExpandNodelist(word)) names.push_back(std::move(name));
      } catch (const sdk::Failure& failure) {
        reading.Fail(std::string("SLURM_HOSTFILE: ") + failure.what());
      }
    }
  }
  if (tasks && names.size() > static_cast<std::size_t>(*tasks))
    names.resize(static_cast<std::size_t>(*tasks));
  return names;
}

// Slurm sorts its lists of nodes, so the order of -m arbitrary is in the file only. `list` has given the
// hosts.
void OrderByHostfile(Reading& reading, const std::string& list, sdk::Allocation* to) {
  if (reading.Find("SLURM_DISTRIBUTION") != "arbitrary" || !reading.Find("SLURM_HOSTFILE")) return;
  SlotList tasks;
  std::string before;
  std::unordered_set<std::string> seen;
  for (const std::string& name : HostfileNames(reading)) {
    if (name != before && !seen.insert(name).second && !to->everywhere) {
      return reading.Fail(
          "SLURM_HOSTFILE returns to host '" + name +
          "' after others, and dtrun numbers the ranks of a host one after the other; put its "
          "lines together, or unset SLURM_DISTRIBUTION");
    }
    tasks.Add(name, 1);
    before = name;
  }
  std::vector<sdk::AllocatedHost> ordered = tasks.Take();
  for (sdk::AllocatedHost& host : ordered) {
    const auto same = [&](const sdk::AllocatedHost& other) { return other.name == host.name; };
    const auto found = std::find_if(to->hosts.begin(), to->hosts.end(), same);
    if (found == to->hosts.end())
      return reading.Fail("SLURM_HOSTFILE has host '" + host.name + "', and " + list + " has not");
    if (to->everywhere) host.slots = found->slots;
  }
  if (ordered.size() != to->hosts.size()) {
    return reading.Fail("SLURM_HOSTFILE has " + std::to_string(ordered.size()) + " hosts, and " + list +
                        " has " + std::to_string(to->hosts.size()));
  }
  if (to->own_index) {
    const std::string own = to->hosts[static_cast<std::size_t>(*to->own_index)].name;
    const auto is_own = [&](const sdk::AllocatedHost& host) { return host.name == own; };
    to->own_index = static_cast<int>(std::find_if(ordered.begin(), ordered.end(), is_own) - ordered.begin());
  }
  to->hosts = std::move(ordered);
  to->root_address = to->hosts[0].name;
}

class Slurm final : public sdk::Launcher {
 public:
  Slurm(const sdk::Host&, const sdk::Options&) {}

  // In a batch script or under salloc dtrun is started once; in a step (srun) once per task, of which there
  // must be one per host.
  sdk::Allocation FindHosts(const sdk::HostsQuery& query) override {
    Reading reading(query);
    const bool step = InStep(reading);
    const std::string list = step ? "SLURM_STEP_NODELIST"
                                  : reading.Sign({"SLURM_JOB_NODELIST", "SLURM_NODELIST"},
                                                 "run dtrun from sbatch, salloc or srun");
    const std::string count =
        step ? "SLURM_STEP_NUM_NODES" : reading.FirstSet({"SLURM_JOB_NUM_NODES", "SLURM_NNODES"});

    sdk::Allocation out;
    out.evidence = list;
    out.sharing = "export it in the batch script before srun, which passes it on";
    if (IsOwnPmi(reading)) out.implies = {"pmi"};
    try {
      for (std::string& name : ExpandNodelist(reading.Text(list))) out.hosts.push_back({std::move(name)});
    } catch (const sdk::Failure& failure) {
      reading.Fail(list + ": " + failure.what());
      reading.End();
    }
    const int hosts = static_cast<int>(out.hosts.size());
    reading.Expect(count, hosts, list + " says " + std::to_string(hosts) + " hosts");
    out.root_address = out.hosts[0].name;
    if (step) {
      ReadStep(reading, &out);
    } else {
      const std::vector<int> slots = Slots(reading, out.hosts.size(), list);
      for (std::size_t i = 0; i < slots.size(); ++i) out.hosts[i].slots = slots[i];
      // Slurm may have another name for this host than it has itself.
      const auto own = std::find_if(out.hosts.begin(), out.hosts.end(), [&](const sdk::AllocatedHost& host) {
        return reading.Find("SLURMD_NODENAME") == host.name;
      });
      if (own != out.hosts.end()) out.own_index = static_cast<int>(own - out.hosts.begin());
    }
    reading.End();
    OrderByHostfile(reading, list, &out);
    reading.End();
    return out;
  }

  // One step of Slurm with an agent on each of these nodes of the allocation. Its agents are told apart by
  // the name that Slurm has for their node.
  // --overlap: the ranks may use what the job has, and what its other steps use too. Binding is dtrun's, and
  // --mpi=none keeps Slurm from being the PMI server of the agents. A node that fails takes no other along.
  // --distribution: one of the user's, with SLURM_HOSTFILE, would name tasks that are not these.
  std::vector<sdk::ConnectCommand> Connect(const sdk::ConnectQuery& query) override {
    if (!query.Variable("SLURM_JOB_ID")) {
      throw sdk::Failure(
          DTRUN_FAILED_PRECONDITION,
          "it starts agents in an allocation, and SLURM_JOB_ID is unset; run dtrun from sbatch or "
          "salloc");
    }
    const std::vector<std::string> hosts = query.hosts();
    const std::string count = std::to_string(hosts.size());
    std::string list;
    sdk::ConnectCommand command;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      list += (i == 0 ? "" : ",") + hosts[i];
      command.hosts.push_back(i);
    }
    command.argv = {"srun",
                    "--quiet",
                    "--overlap",
                    "--input=all",
                    "--cpu-bind=none",
                    "--mpi=none",
                    "--no-kill",
                    "--kill-on-bad-exit=0",
                    "--wait=0",
                    "--nodes=" + count,
                    "--ntasks=" + count,
                    "--ntasks-per-node=1",
                    "--distribution=block",
                    "--nodelist=" + list};
    for (std::string& word : query.argv()) command.argv.push_back(std::move(word));
    command.host_variable = "SLURMD_NODENAME";
    command.trial = "srun --overlap hostname";
    command.ending = ": task";
    return {command};
  }

  void Plan(const sdk::Job& job, const sdk::PlanSink& sink) override {
    if (!job.Inherited("SLURM_JOB_ID")) {
      throw sdk::Failure(DTRUN_FAILED_PRECONDITION,
                         "SLURM_JOB_ID is unset, so this is not a Slurm allocation; run dtrun from sbatch "
                         "or salloc, or take launcher.name = \"per-process\"");
    }
    const Variables shared = OfAll(job);
    for (std::uint64_t index = 0; index < job.host_count(); ++index) {
      const dtrun_job_host host = job.host(index);
      std::string ranks;
      for (int local = 0; local < host.local_size; ++local) {
        ranks += (local == 0 ? "" : ",") + std::to_string(host.first_rank + local);
      }
      for (int local = 0; local < host.local_size; ++local) {
        sdk::Process process = job.ProcessFor(index, local);
        process.env = shared;
        const std::string rank = std::to_string(process.rank), place = std::to_string(local);
        process.env.insert(process.env.end(), {{"SLURM_PROCID", rank},
                                               {"SLURM_LOCALID", place},
                                               {"SLURM_GTIDS", ranks},
                                               {"SLURM_NODEID", std::to_string(index)},
                                               {"RANK", rank},
                                               {"LOCAL_RANK", place},
                                               {"LOCAL_WORLD_SIZE", std::to_string(host.local_size)},
                                               {"NODE_RANK", std::to_string(index)}});
        sink.Add(process);
      }
    }
  }

 private:
  // What is the same for every rank.
  static Variables OfAll(const sdk::Job& job) {
    std::string names;
    std::vector<int> sizes;
    for (std::uint64_t index = 0; index < job.host_count(); ++index) {
      const dtrun_job_host host = job.host(index);
      names += (index == 0 ? "" : ",") + std::string(host.name);
      sizes.push_back(host.local_size);
    }
    const std::string tasks = std::to_string(job.world_size()), hosts = std::to_string(job.host_count());
    Variables env = {
        {"SLURM_NTASKS", tasks},
        {"SLURM_NPROCS", tasks},
        {"SLURM_STEP_NUM_TASKS", tasks},
        {"SLURM_TASKS_PER_NODE", CompressCounts(sizes)},
        {"SLURM_STEP_TASKS_PER_NODE", CompressCounts(sizes)},
        {"SLURM_NNODES", hosts},
        {"SLURM_STEP_NUM_NODES", hosts},
        {"SLURM_NODELIST", names},
        {"SLURM_STEP_NODELIST", names},
        {"SLURM_RESTART_COUNT", job.generation()},
        {"WORLD_SIZE", tasks},
        {"MASTER_ADDR", job.master_addr()},
        {"MASTER_PORT", job.master_port()},
    };
    // Lightning refuses several tasks without it.
    const bool equal = std::all_of(sizes.begin(), sizes.end(), [&](int size) { return size == sizes[0]; });
    if (equal) env.emplace_back("SLURM_NTASKS_PER_NODE", std::to_string(sizes[0]));
    return env;
  }
};

}  // namespace
}  // namespace dtrun::schedulers

DTRUN_SDK_PLUGIN(
    dtrun::schedulers::Slurm, .name = "slurm", .version = DTRUN_VERSION, .vendor = "dtrun",
    .license = "Apache-2.0",
    .summary = "an allocation of Slurm; every rank is a process with the environment of a task of srun")
