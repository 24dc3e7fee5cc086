#include "tools/dtrun/command_line/variables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "tools/dtrun/command_line/first_word.h"
#include "tools/dtrun/command_line/flag_rows.h"

namespace dtrun::cli {
namespace {

using Environment = std::map<std::string, std::string>;

// A variable equivalent to a flag of its launcher.
struct SameAs {
  std::string_view variable, flag;
};

// srun(1), "INPUT ENVIRONMENT VARIABLES": those that affect how ranks are started. The others are properties
// of the allocation, or match what dtrun does anyway. SLURM_DISTRIBUTION: core/plan/own_variables.cc.
constexpr SameAs kSrun[] = {{"SLURM_BCAST", "--bcast"},
                            {"SLURM_COMPRESS", "--compress"},
                            {"SLURM_CPU_BIND", "--cpu-bind"},
                            {"SLURM_EPILOG", "--epilog"},
                            {"SLURM_EXPORT_ENV", "--export"},
                            {"SLURM_GPU_BIND", "--gpu-bind"},
                            {"SLURM_HINT", "--hint"},
                            {"SLURM_MEM_BIND", "--mem-bind"},
                            {"SLURM_NO_KILL", "--no-kill"},
                            {"SLURM_NTASKS_PER_CORE", "--ntasks-per-core"},
                            {"SLURM_NTASKS_PER_GPU", "--ntasks-per-gpu"},
                            {"SLURM_NTASKS_PER_SOCKET", "--ntasks-per-socket"},
                            {"SLURM_OPEN_MODE", "--open-mode"},
                            {"SLURM_OVERCOMMIT", "--overcommit"},
                            {"SLURM_PROLOG", "--prolog"},
                            {"SLURM_REMOTE_CWD", "--chdir"},
                            {"SLURM_RESV_PORTS", "--resv-ports"},
                            {"SLURM_SEND_LIBS", "--send-libs"},
                            {"SLURM_STDERRMODE", "--error"},
                            {"SLURM_STDINMODE", "--input"},
                            {"SLURM_STDOUTMODE", "--output"},
                            {"SLURM_TASK_EPILOG", "--task-epilog"},
                            {"SLURM_TASK_PROLOG", "--task-prolog"},
                            {"SLURM_THREADS", "--threads"},
                            {"SLURM_TIMELIMIT", "--time"},
                            {"SLURM_WAIT", "--wait"},
                            {"SRUN_CONTAINER", "--container"},
                            {"SRUN_CPUS_PER_TASK", "--cpus-per-task"},
                            {"SRUN_EXPORT_ENV", "--export"}};

// Hydra's names; Intel MPI's have the prefix I_MPI_.
constexpr SameAs kHydra[] = {{"HYDRA_BINDING", "-bind-to"},
                             {"HYDRA_BOOTSTRAP", "-bootstrap"},
                             {"HYDRA_BOOTSTRAP_EXEC", "-launcher-exec"},
                             {"HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "-launcher-exec"},
                             {"HYDRA_CONFIG_FILE", "-configfile"},
                             {"HYDRA_HOST_FILE", "-f"},
                             {"HYDRA_IFACE", "-iface"},
                             {"HYDRA_LAUNCHER", "-launcher"},
                             {"HYDRA_LAUNCHER_EXEC", "-launcher-exec"},
                             {"HYDRA_LAUNCHER_EXTRA_ARGS", "-launcher-exec"},
                             {"HYDRA_MAPPING", "-map-by"},
                             {"HYDRA_MEMBIND", "-membind"},
                             {"HYDRA_RMK", "-rmk"},
                             {"I_MPI_JOB_TIMEOUT", "--timeout"},
                             {"I_MPI_PERHOST", "-perhost"},
                             {"MPIEXEC_TIMEOUT", "--timeout"}};
constexpr std::string_view kOfHydra[] = {"HYDRA_", "I_MPI_HYDRA_", "I_MPI_JOB_", "MPIEXEC_"};
// Variables that match dtrun's default, or that mpirun's plugin lets ranks inherit.
constexpr std::string_view kAsHydra[] = {"HYDRA_ENV", "I_MPI_HYDRA_ENV"};

// The replacement for a flag; empty: it would change nothing.
std::string InPlaceOf(const ForeignFlag& flag, const std::string& name, const std::string& value) {
  const auto text_or = [&](std::string_view otherwise) {
    return flag.text.empty() ? std::string(otherwise) : AdviceOf(flag, value);
  };
  switch (flag.reading) {
    case Reading::kOption: return fmt::format("in its place: {} {}", flag.text, Quoted({value}));
    case Reading::kRefused:
    case Reading::kMpirun:
    case Reading::kUnread: return text_or("unset it");
    case Reading::kNothing:
    case Reading::kNothingOf: return {};
    default: break;
  }
  const auto read = ReadForeign(flag, name, [&]() -> Result<std::string> { return value; });
  if (!read) return flag.why.empty() || flag.reading == Reading::kDefault ? text_or("unset it") : std::string(flag.why);
  return read->words.empty() ? "" : "in its place: " + Quoted(read->words);
}

class Reader {
 public:
  Reader(const Environment& environment, const Started& job) : environment_(environment), job_(job) {}

  std::vector<std::string> Run() {
    const bool mpis = !Has("PMI_RANK") && !Has("OMPI_COMM_WORLD_SIZE") && !Has("PMIX_NAMESPACE") &&
                      job_.platform != "mpijob";  // there the operator sets them and dtrun reads the hosts from them
    if (mpis) ReadMca();
    if (mpis && job_.launcher != "mpirun") ReadHydra();
    // Within a step Slurm or that step's srun has set them.
    if (Has("SLURM_JOB_ID") && !Has("SLURM_STEP_ID") && !Has("SLURM_STEPID")) ReadSrun();
    ReadTorchrun();
    return std::move(lines_);
  }

 private:
  bool Has(const char* name) const { return environment_.contains(name); }

  void Tell(const std::string& variable, std::string_view launcher, const std::string& in_place) {
    lines_.push_back(fmt::format("{} has no effect: {} reads it, and dtrun starts the ranks; {}", variable, launcher,
                                 in_place));
  }

  // For variables without a replacement.
  void TellTogether(const std::vector<std::string>& variables, std::string_view launcher) {
    if (variables.empty()) return;
    const bool one = variables.size() == 1;
    lines_.push_back(fmt::format("{} {} no effect: {} reads {}, and dtrun starts the ranks", fmt::join(variables, ", "),
                                 one ? "has" : "have", launcher, one ? "it" : "them"));
  }

  void ReadMca() {
    std::vector<std::string> idle;
    for (const std::string_view prefix : {"OMPI_MCA_", "PRTE_MCA_"}) {
      for (auto one = environment_.lower_bound(std::string(prefix));
           one != environment_.end() && one->first.starts_with(prefix); ++one) {
        const auto& [variable, value] = *one;
        std::string name = variable.substr(prefix.size());
        const ForeignFlag* flag = FindMpirunParameter(name);
        if (job_.launcher == "mpirun") {
          TellMpirun(variable, name, value);
        } else if (flag != nullptr) {
          const std::string in_place = InPlaceOf(*flag, variable, MpirunValue(*flag, value));
          if (!in_place.empty()) Tell(variable, "mpirun", in_place);
          if (flag->reading == Reading::kNothingOf) idle.push_back(variable);
        } else if (prefix == "PRTE_MCA_") {
          idle.push_back(variable);
        }
      }
    }
    TellTogether(idle, "mpirun");
  }

  // mpirun inherits the others.
  void TellMpirun(const std::string& variable, const std::string& name, const std::string& value) {
    if (!name.starts_with("orte_") || variable.starts_with("PRTE_")) return;
    lines_.push_back(fmt::format(
        "{} does not reach mpirun, as variables that an outer mpirun sets are withheld; in its place: --set {}", variable,
        Quoted({fmt::format("launcher.options.arguments=[\"--mca\", \"{}\", \"{}\"]", name, value)})));
  }

  void ReadHydra() {
    std::vector<std::string> idle;
    for (const auto& [variable, value] : environment_) {
      const bool is_hydras =
          std::ranges::any_of(kOfHydra, [&](std::string_view prefix) { return variable.starts_with(prefix); });
      if ((!is_hydras && variable != "I_MPI_PERHOST") || std::ranges::count(kAsHydra, variable) > 0) continue;
      const std::string_view plain = std::string_view(variable).substr(variable.starts_with("I_MPI_HYDRA_") ? 6 : 0);
      const auto same = std::ranges::find(kHydra, plain, &SameAs::variable);
      if (same == std::end(kHydra)) {
        idle.push_back(variable);
      } else {
        TellFlag(variable, value, *same, "mpiexec");
      }
    }
    TellTogether(idle, "mpiexec");
  }

  void ReadSrun() {
    for (const SameAs& same : kSrun) {
      const auto found = environment_.find(std::string(same.variable));
      if (found != environment_.end()) TellFlag(found->first, found->second, same, "srun");
    }
  }

  void TellFlag(const std::string& variable, const std::string& value, const SameAs& same, std::string_view launcher) {
    const ForeignFlag* flag = FindForeignFlag(same.flag, launcher == "srun" ? "srun" : "mpirun");
    const std::string in_place = InPlaceOf(*flag, variable, value);
    if (!in_place.empty()) Tell(fmt::format("{}={}", variable, value), launcher, in_place);
  }

  // A torchrun started by a rank may read them.
  void ReadTorchrun() {
    if (job_.launcher == "per-node" || job_.platform == "kubeflow" || job_.platform == "torchrun") return;
    std::vector<std::string> given;
    for (auto one = environment_.lower_bound("PET_"); one != environment_.end() && one->first.starts_with("PET_"); ++one)
      given.push_back(one->first);
    if (given.empty()) return;
    lines_.push_back(fmt::format("{} {} no effect: torchrun reads {}, and so does 'dtrun torchrun'; "
                                 "--set cluster.from=kubeflow takes the hosts from them",
                                 fmt::join(given, ", "), given.size() == 1 ? "has" : "have",
                                 given.size() == 1 ? "it" : "them"));
  }

  const Environment& environment_;
  const Started& job_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> UnusedVariables(const Environment& environment, const Started& job) {
  if (environment.contains("DTRUN_JOB_KEY")) return {};  // in a rank of dtrun
  return Reader(environment, job).Run();
}

}  // namespace dtrun::cli
