// Slurm: srun(1), "OUTPUT ENVIRONMENT VARIABLES". In a batch script or under salloc dtrun
// is started once; in a step (srun) once per task, of which there must be one per host.
#include <fmt/format.h>

#include <algorithm>

#include "core/hosts/platforms.h"
#include "core/hosts/reading.h"
#include "core/hosts/slurm_list.h"

namespace dtrun::hosts {
namespace {

// The first of the variables that is set, else the first.
std::string FirstSet(const Reading& reading, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (reading.Find(name) != nullptr) return name;
  }
  return *names.begin();
}

// Counts per host under `name`; empty when unset or wrong.
std::vector<int> Counts(Reading& reading, const std::string& name, std::size_t hosts,
                        const std::string& list) {
  const std::string* text = reading.Find(name);
  if (text == nullptr) return {};
  auto counts = ExpandCounts(*text);
  if (!counts) {
    reading.Fail(fmt::format("{}: {}", name, counts.error().text));
    return {};
  }
  if (counts->size() != hosts) {
    reading.Fail(fmt::format("{} says {} hosts, {}='{}' says {}", list, hosts, name, *text, counts->size()));
    return {};
  }
  if (std::ranges::any_of(*counts, [](int count) { return count < 1 || count > kMaxSlots; })) {
    reading.Fail(fmt::format("{}='{}' has a count that is not from 1 to {}", name, *text, kMaxSlots));
    return {};
  }
  return std::move(*counts);
}

// Tasks that the user asked for; without such a request the processors of each host.
std::vector<int> Slots(Reading& reading, std::size_t hosts, const std::string& list) {
  std::vector<int> tasks = Counts(reading, "SLURM_TASKS_PER_NODE", hosts, list);
  const auto most = reading.MaybeNumber("SLURM_NTASKS_PER_NODE", 1);
  for (const int count : tasks) {
    if (!most || count <= *most) continue;
    reading.Disagree("SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE");
    break;
  }
  if (!tasks.empty()) return tasks;
  if (most) return std::vector<int>(hosts, *most);
  return Counts(reading, "SLURM_JOB_CPUS_PER_NODE", hosts, list);
}

void ReadStep(Reading& reading, Allocation* to) {
  const auto tasks = Counts(reading, "SLURM_STEP_TASKS_PER_NODE", to->hosts.size(), "SLURM_STEP_NODELIST");
  if (std::ranges::any_of(tasks, [](int count) { return count != 1; })) {
    reading.Fail(fmt::format(
        "SLURM_STEP_TASKS_PER_NODE says {} tasks, and dtrun starts the ranks itself; start it once per "
        "host: srun --ntasks-per-node=1 dtrun",
        *reading.Find("SLURM_STEP_TASKS_PER_NODE")));
  }
  const int index = reading.Number("SLURM_NODEID", 0);
  if (!to->hosts.empty() && index >= to->count.min) {
    reading.Fail(fmt::format("SLURM_NODEID says {}, SLURM_STEP_NODELIST has {} hosts", index, to->count.min));
  }
  to->own_index = index;
  // Slurm has no rule for a port that all tasks know; Lightning's is this one.
  if (const auto job = reading.MaybeNumber("SLURM_JOB_ID", 1)) to->rank_port = 15000 + *job % 10000;
}

// Whether this is one of the tasks of a step. The shell that salloc or srun --pty gives to a user stands in a
// step of its own, of one host, and speaks for the whole allocation (SLURM_INTERACTIVE_STEP in slurm.h).
bool InStep(const Reading& reading) {
  constexpr char kInteractive[] = "4294967290";
  if (reading.Find("SLURM_STEP_NODELIST") == nullptr) return false;
  const std::string* id = reading.Find("SLURM_STEP_ID");
  return id == nullptr || *id != kInteractive;
}

}  // namespace

Result<Allocation> ReadSlurm(const Environment& environment) {
  Reading reading(environment, "slurm");
  const bool step = InStep(reading);
  const std::string list =
      step ? "SLURM_STEP_NODELIST" : FirstSet(reading, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  const std::string count =
      step ? "SLURM_STEP_NUM_NODES" : FirstSet(reading, {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"});

  Allocation out;
  const std::string text = reading.Text(list);
  if (text.empty()) return reading.Take(out);
  auto names = ExpandNodelist(text);
  if (!names) {
    reading.Fail(fmt::format("{}: {}", list, names.error().text));
    return reading.Take(out);
  }
  const int hosts = static_cast<int>(names->size());
  reading.Expect(count, hosts, fmt::format("{} says {} hosts", list, hosts));
  for (std::string& name : *names) out.hosts.push_back({std::move(name), {}});
  out.count = {hosts, hosts};
  out.root_address = out.hosts[0].name;
  if (step) {
    ReadStep(reading, &out);
    return reading.Take(out);
  }
  const std::vector<int> slots = Slots(reading, out.hosts.size(), list);
  for (std::size_t i = 0; i < slots.size(); ++i) out.hosts[i].slots = slots[i];
  return reading.Take(out);
}

}  // namespace dtrun::hosts
