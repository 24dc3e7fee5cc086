#include "core/plan/pmi.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

#include "core/contract/environment.h"
#include "core/options/snapshot.h"
#include "core/plan/at.h"
#include "core/plan/place.h"
#include "core/pmi/program.h"
#include "core/pmi/server.h"

namespace dtrun::plan {
namespace {

using Variables = std::map<std::string, std::string>;

// Whether the communicator's traffic uses MPI: its ranks communicate through the backend at all, and that
// does.
bool NeedsMpi(const spec::JobSpec& spec, const std::string& backend, int host_count) {
  const bool carries = host_count > 1 || *spec.comm.emulate_hosts > 1 || spec.comm.local.is("none");
  return carries && options::LowestOf(backend) == "mpi";
}

Result<pmi::Kind> Choose(const Inputs& inputs, Plan* plan) {
  const int host_count = static_cast<int>(plan->hosts.size());
  const pmi::Kind kind = WantedPmi(inputs.spec, plan->backend, host_count, plan->world_size(),
                                   plan->processes.front().argv.front());
  const Status servable = pmi::Servable(kind);
  if (servable) return kind;
  if (!inputs.spec.job.pmi.is("auto") || NeedsMpi(inputs.spec, plan->backend, host_count))
    return servable.error();
  plan->warnings.push_back("the program is linked with Open MPI: " + servable.error().text);
  return pmi::Kind::kNone;
}

// A program that is itself linked with MPI is one rank to MPI, and waits in MPI_Init for the others forever.
// A program that starts a process for each rank is usually not linked with MPI; users who set job.pmi accept
// the risk.
Status CheckOneRankEach(const spec::JobSpec& spec, const Plan& plan) {
  if (!spec.job.pmi.is("auto")) return {};
  for (const Process& process : plan.processes) {
    if (process.rank_count == 1 || pmi::KindOfProgram(process.argv.front()) == pmi::Kind::kNone) continue;
    return At(spec.launcher.name,
              "'{}' is linked with MPI, where each process is one rank, and launcher '{}' "
              "starts {} ranks in one process; set launcher.name = \"per-process\"",
              process.argv.front(), plan.launcher, process.rank_count);
  }
  return {};
}

// Settings of Open MPI's library in a job where nothing reads them; empty: none.
std::string UnreadMca(const spec::JobSpec& spec, const Plan& plan) {
  // A program that runs once per node may start mpirun itself.
  if (plan.pmi == pmi::Kind::kPmix || options::LowestOf(plan.backend) == "mpi" || plan.launcher == "mpirun" ||
      plan.launcher == "per-node" || !spec.job.pmi.is("auto"))
    return {};
  std::vector<std::string> names;
  for (const auto& [name, value] : UserVariables(spec)) {
    if (name.starts_with("OMPI_MCA_")) names.push_back(name);
  }
  if (names.empty()) return {};
  const std::string& program = plan.processes.front().argv.front();
  const pmi::Kind linked = pmi::KindOfProgram(program);
  if (linked == pmi::Kind::kPmix) return {};
  return fmt::format(
      "{} (job.env): only Open MPI reads {}, and '{}' is not linked with it; leave {} out{}",
      fmt::join(names, ", "), names.size() == 1 ? "it" : "them", program, names.size() == 1 ? "it" : "them",
      linked == pmi::Kind::kNone ? ", or, if the program loads Open MPI later, add --set job.pmi=pmix" : "");
}

// Set if the program's MPI library looks for another interface than the user chose: every rank would be
// alone. Only a warning, because an MPI library may be built for both.
std::string OtherInterface(const spec::JobSpec& spec, const Plan& plan) {
  if (!spec.job.pmi.is("pmix") && !spec.job.pmi.is("pmi1")) return {};
  const std::string& program = plan.processes.front().argv.front();
  const std::string library = pmi::MpiLibraryOf(program);
  const pmi::Kind needs = pmi::KindOfLibrary(library);
  if (plan.world_size() == 1 || needs == pmi::Kind::kNone || spec.job.pmi.is(pmi::KindName(needs))) return {};
  return fmt::format(
      "job.pmi is \"{}\", but '{}' is linked with {}, which usually finds other ranks by \"{}\" alone: each "
      "rank may be in a world of its own; leave job.pmi at \"auto\"",
      *spec.job.pmi, program, library, pmi::KindName(needs));
}

Variables PmixVariables(const Process& process) {
  return {{"PMIX_RANK", std::to_string(process.rank)},
          {"PMIX_NAMESPACE", kTokenPmixNamespace},
          // Without this variable Open MPI 4.1 assumes that it runs alone. It contacts nothing at
          // that address.
          {"OMPI_MCA_orte_local_daemon_uri", "1.0;tcp://127.0.0.1:1"}};
}

Variables Pmi1Variables(const Plan& plan, const Process& process) {
  const Host& host = plan.hosts[static_cast<std::size_t>(process.host)];
  return {{"PMI_FD", std::to_string(pmi::kRankDescriptor)},
          {"PMI_RANK", std::to_string(process.rank)},
          {"PMI_SIZE", std::to_string(plan.world_size())},
          {"PMI_SPAWNED", "0"},
          {"MPI_LOCALRANKID", std::to_string(process.local_rank)},
          {"MPI_LOCALNRANKS", std::to_string(host.local_size)}};
}

}  // namespace

pmi::Kind WantedPmi(const spec::JobSpec& spec, const std::string& backend, int host_count, int world_size,
                    const std::string& program) {
  const std::string& wish = *spec.job.pmi;
  for (const pmi::Kind kind : {pmi::Kind::kNone, pmi::Kind::kPmix, pmi::Kind::kPmi1}) {
    if (wish == pmi::KindName(kind)) return kind;
  }
  // "auto". mpirun serves its own ranks.
  if (spec.launcher.name.is("mpirun") || world_size == 1) return pmi::Kind::kNone;
  if (NeedsMpi(spec, backend, host_count)) return pmi::Kind::kPmix;
  const pmi::Kind kind = pmi::KindOfProgram(program);
  // Ranks in separate containers share no memory and fall back to the backend.
  const bool spare =
      kind == pmi::Kind::kNone && options::LowestOf(backend) == "mpi" && pmi::Servable(pmi::Kind::kPmix);
  return spare ? pmi::Kind::kPmix : kind;
}

std::string WhyNotServed(const spec::JobSpec& spec, const std::string& backend, int host_count,
                         int world_size) {
  if (world_size < 2 || spec.launcher.name.is("mpirun")) return {};
  if (!NeedsMpi(spec, backend, host_count)) return {};
  const std::string& wish = *spec.job.pmi;
  if (wish != "auto" && wish != pmi::KindName(pmi::Kind::kPmix)) {
    return fmt::format(
        "its ranks find each other through PMIx, and job.pmi is \"{}\"; leave it at \"auto\", or set "
        "launcher.name = \"mpirun\"",
        wish);
  }
  const Status servable = pmi::Servable(pmi::Kind::kPmix);
  return servable ? "" : servable.error().text;
}

Status ServePmi(const Inputs& inputs, Plan* plan) {
  const spec::JobSpec& spec = inputs.spec;
  const Variables& user = UserVariables(spec);
  if (spec.launcher.name.is("mpirun")) {
    for (Process& process : plan->processes) process.env[contract::kIsolatedRanks] = *spec.job.isolated_ranks;
  }
  Result<pmi::Kind> kind = Choose(inputs, plan);
  if (!kind) return At(spec.job.pmi, kind.error());
  plan->pmi = *kind;
  for (std::string warning : {UnreadMca(spec, *plan), OtherInterface(spec, *plan)}) {
    if (!warning.empty()) plan->warnings.push_back(std::move(warning));
  }
  if (*kind == pmi::Kind::kNone) return {};
  if (Status status = CheckOneRankEach(spec, *plan); !status) return status;
  for (Process& process : plan->processes) {
    if (*kind == pmi::Kind::kPmi1 && process.rank_count > 1) {
      return At(spec.job.pmi,
                Error::Of(DTRUN_UNSUPPORTED,
                          "PMI-1 serves processes of one rank each, and launcher '{}' starts {} ranks in "
                          "one; choose another launcher",
                          plan->launcher, process.rank_count));
    }
    for (auto& [name, value] :
         *kind == pmi::Kind::kPmix ? PmixVariables(process) : Pmi1Variables(*plan, process)) {
      if (user.contains(name)) {
        return At(spec.job.env, "'{}' is set for each rank because of job.pmi; remove it from job.env", name);
      }
      process.env[name] = value;
    }
    // Open MPI ranks spin while they wait: with too few processors they must yield.
    const Host& host = plan->hosts[static_cast<std::size_t>(process.host)];
    constexpr char kYield[] = "OMPI_MCA_mpi_yield_when_idle";
    if (*kind == pmi::Kind::kPmix && host.local_size > host.cores && !inputs.environment.contains(kYield)) {
      process.env.emplace(kYield, "1");
    }
  }
  return {};
}

}  // namespace dtrun::plan
