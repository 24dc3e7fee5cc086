#include "launchers/slurm/hosts.h"

#include <algorithm>
#include <unordered_set>

#include "launchers/schedulers/nodelist.h"
#include "launchers/schedulers/reading.h"

namespace dtrun::slurm {
namespace {

using schedulers::kMaxSlots;
using schedulers::Reading;

// Counts per host under `name`; empty when unset or wrong.
std::vector<int> Counts(Reading& reading, const std::string& name, std::size_t hosts,
                        const std::string& list) {
  const auto text = reading.Find(name);
  if (!text) return {};
  std::vector<int> counts;
  try {
    counts = schedulers::ExpandCounts(*text);
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
  for (std::string line : schedulers::LinesOf(reading.FileOf("SLURM_HOSTFILE"))) {
    for (const std::string& word : schedulers::WordsOf(line.substr(0, line.find('#')))) {
      try {
        for (std::string& name : schedulers::ExpandNodelist(word)) names.push_back(std::move(name));
      } catch (const sdk::Failure& failure) {
        reading.Fail(std::string("SLURM_HOSTFILE: ") + failure.what());
      }
    }
  }
  if (tasks && names.size() > static_cast<std::size_t>(*tasks)) names.resize(static_cast<std::size_t>(*tasks));
  return names;
}

// Slurm sorts its lists of nodes, so the order of -m arbitrary is in the file only. `list` has given the hosts.
void OrderByHostfile(Reading& reading, const std::string& list, sdk::Allocation* to) {
  if (reading.Find("SLURM_DISTRIBUTION") != "arbitrary" || !reading.Find("SLURM_HOSTFILE")) return;
  schedulers::SlotList tasks;
  std::string before;
  std::unordered_set<std::string> seen;
  for (const std::string& name : HostfileNames(reading)) {
    if (name != before && !seen.insert(name).second && !to->everywhere) {
      return reading.Fail("SLURM_HOSTFILE returns to host '" + name +
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
    return reading.Fail("SLURM_HOSTFILE has " + std::to_string(ordered.size()) + " hosts, and " + list + " has " +
                        std::to_string(to->hosts.size()));
  }
  if (to->own_index) {
    const std::string own = to->hosts[static_cast<std::size_t>(*to->own_index)].name;
    const auto is_own = [&](const sdk::AllocatedHost& host) { return host.name == own; };
    to->own_index = static_cast<int>(std::find_if(ordered.begin(), ordered.end(), is_own) - ordered.begin());
  }
  to->hosts = std::move(ordered);
  to->root_address = to->hosts[0].name;
}

}  // namespace

sdk::Allocation FindHosts(const sdk::HostsQuery& query) {
  Reading reading(query);
  const bool step = InStep(reading);
  const std::string list =
      step ? "SLURM_STEP_NODELIST"
           : reading.Sign({"SLURM_JOB_NODELIST", "SLURM_NODELIST"}, "run dtrun from sbatch, salloc or srun");
  const std::string count =
      step ? "SLURM_STEP_NUM_NODES" : reading.FirstSet({"SLURM_JOB_NUM_NODES", "SLURM_NNODES"});

  sdk::Allocation out;
  out.evidence = list;
  out.sharing = "export it in the batch script before srun, which passes it on";
  if (IsOwnPmi(reading)) out.implies = {"pmi"};
  try {
    for (std::string& name : schedulers::ExpandNodelist(reading.Text(list)))
      out.hosts.push_back({std::move(name)});
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

// --overlap: the ranks may use what the job has, and what its other steps use too. Binding is dtrun's, and
// --mpi=none keeps Slurm from being the PMI server of the agents. A node that fails takes no other along.
// --distribution: one of the user's, with SLURM_HOSTFILE, would name tasks that are not these.
std::vector<sdk::ConnectCommand> Connect(const sdk::ConnectQuery& query) {
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

}  // namespace dtrun::slurm
