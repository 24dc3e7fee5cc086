#include "tools/dtrun/mpirun/identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/base/number.h"
#include "core/base/read_file.h"
#include "core/contract/environment.h"
#include "core/node/rank_contacts.h"
#include "core/pmi/program.h"
#include "core/process/process.h"
#include "core/process/program.h"

namespace dtrun::mpirun {
namespace {

struct Family {
  pmi::Kind served;
  const char *rank, *size, *local_rank, *local_size;  // the variables with these numbers
  const char* framework;                              // as in core/node/rank_contacts.h
  const char* mpi;                                    // of a program
  const char* launcher;
  const char* next;  // where it has started a program of the other family
};
constexpr Family kFamilies[] = {
    {pmi::Kind::kPmix, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "Open MPI", "Open MPI", "Open MPI's mpirun",
     "set launcher.options.program to its own mpirun, such as \"mpiexec.hydra\", build it with Open MPI, or "
     "leave out launcher.name and let dtrun start it"},
    {pmi::Kind::kPmi1, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "MPICH",
     "MPICH or a relative (Intel MPI, MVAPICH)", "a Hydra (MPICH's or Intel MPI's mpirun)",
     "set launcher.options.program to Open MPI's mpirun, build it with MPICH, or leave out launcher.name and "
     "let dtrun start it"},
};

const Family& Of(pmi::Kind kind) { return kFamilies[kind == pmi::Kind::kPmix ? 0 : 1]; }
const Family& OtherThan(pmi::Kind kind) { return kFamilies[kind == pmi::Kind::kPmix ? 1 : 0]; }

Result<int> Number(const Lookup& lookup, const char* name) {
  const char* text = lookup(name);
  if (text == nullptr) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("{} is not set, though others of mpirun's variables are", name)};
  }
  if (const auto value = NumberOf<int>(text); value && *value >= 0) return *value;
  return Error{DTRUN_INVALID_ARGUMENT, fmt::format("{} is '{}', which is not a number from 0", name, text)};
}

Status Expect(const char* what, int found, const Lookup& lookup, const char* planned) {
  const Result<int> number = Number(lookup, planned);
  if (!number) return number.error();
  if (*number == found) return {};
  return Error{DTRUN_FAILED_PRECONDITION,
               fmt::format("mpirun has started {} {}, but the job has {}; let the arguments of "
                           "launcher.options leave the number of processes and of slots alone",
                           found, what, *number)};
}

}  // namespace

Result<Identity> ReadIdentity(const Lookup& lookup) {
  for (const Family& names : kFamilies) {
    if (lookup(names.rank) == nullptr) continue;
    Identity out;
    out.served = names.served;
    for (const auto& [name, to] :
         {std::pair(names.rank, &out.rank), std::pair(names.size, &out.size),
          std::pair(names.local_rank, &out.local_rank), std::pair(names.local_size, &out.local_size)}) {
      const Result<int> number = Number(lookup, name);
      if (!number) return number.error();
      *to = *number;
    }
    return out;
  }
  return Error{DTRUN_FAILED_PRECONDITION,
               "neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set: this process is started by an mpirun, "
               "which the mpirun launcher of dtrun starts"};
}

Result<std::map<std::string, std::string>> RankVariables(const Identity& identity, const Lookup& lookup) {
  if (Status world = Expect("ranks", identity.size, lookup, contract::kWorldSize); !world)
    return world.error();
  if (Status local = Expect("ranks on this host", identity.local_size, lookup, contract::kLocalWorldSize);
      !local) {
    return local.error();
  }
  // For a host with a single rank the plan names that rank.
  const Result<int> first =
      Number(lookup, lookup(contract::kFirstRank) ? contract::kFirstRank : contract::kRank);
  if (!first) return first.error();
  if (identity.rank != *first + identity.local_rank) {
    return Error{
        DTRUN_FAILED_PRECONDITION,
        fmt::format("mpirun numbers this process {}, and the plan {}: ranks are numbered host by host; leave "
                    "arguments such as '--map-by node' out of launcher.options",
                    identity.rank, *first + identity.local_rank)};
  }
  const std::string rank = std::to_string(identity.rank), local_rank = std::to_string(identity.local_rank);
  return std::map<std::string, std::string>{{contract::kRank, rank},
                                            {contract::kLocalRank, local_rank},
                                            {"RANK", rank},
                                            {"LOCAL_RANK", local_rank}};
}

Status CheckHostProcess(const Identity& identity, const Lookup& lookup) {
  if (Status hosts = Expect("processes", identity.size, lookup, contract::kHostCount); !hosts) return hosts;
  if (identity.local_size == 1) return {};
  return Error{DTRUN_FAILED_PRECONDITION,
               fmt::format("mpirun has started {} processes on this host, and launcher.options.processes = "
                           "\"host\" wants one",
                           identity.local_size)};
}

Result<std::string> FindHere(const std::string& program) {
  std::error_code failure;
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return process::FindProgram(program, std::filesystem::current_path(failure).string(), environment);
}

Status CheckMpi(const std::vector<std::string>& command, pmi::Kind served) {
  if (command.empty()) return {};
  const Result<std::string> file = FindHere(command[0]);
  if (!file) return {};  // starting it will report the error
  const std::string library = pmi::MpiLibraryOf(*file);
  const pmi::Kind own = pmi::KindOfLibrary(library);
  if (own == pmi::Kind::kNone || own == served) return {};
  return Error{
      DTRUN_FAILED_PRECONDITION,
      fmt::format("'{}' is linked with {} ({}), but {} has started it: every rank would be rank 0 of 1; {}",
                  command[0], Of(own).mpi, library, Of(served).launcher, Of(served).next)};
}

Loaded LoadedIn(const std::string& maps, pmi::Kind served) {
  const std::vector<std::string> found = node::FrameworksIn(maps);
  const auto has = [&](const Family& one) { return std::ranges::count(found, one.framework) != 0; };
  if (has(Of(served))) return Loaded::kOwn;
  return has(OtherThan(served)) ? Loaded::kForeign : Loaded::kNone;
}

Loaded LoadedBy(pid_t process, pmi::Kind served) {
  std::string maps = ReadKernelFile(fmt::format("/proc/{}/maps", process));
  for (const process::Process& below : process::Descendants(process))
    maps += ReadKernelFile(fmt::format("/proc/{}/maps", below.pid));
  return LoadedIn(maps, served);
}

std::string ForeignText(pmi::Kind served) {
  return fmt::format(
      "it has loaded {}, but {} has started it: with that each rank works in a world of one, as rank 0 of 1; "
      "{}; "
      "job.isolated_ranks = \"allow\" if this is intended",
      OtherThan(served).mpi, Of(served).launcher, Of(served).next);
}

}  // namespace dtrun::mpirun
