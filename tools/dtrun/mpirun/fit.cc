#include "tools/dtrun/mpirun/fit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/base/kernel_file.h"
#include "core/node/rank_contacts.h"
#include "core/pmi/program.h"
#include "core/process/process.h"
#include "core/process/program.h"

namespace dtrun::mpirun {
namespace {

// Same names as in core/node/rank_contacts.h.
const char* FrameworkOf(pmi::Kind kind) { return kind == pmi::Kind::kPmix ? "Open MPI" : "MPICH"; }

const char* ProgramsMpi(pmi::Kind kind) {
  return kind == pmi::Kind::kPmix ? "Open MPI" : "MPICH or a relative (Intel MPI, MVAPICH)";
}

const char* Launcher(pmi::Kind served) {
  return served == pmi::Kind::kPmix ? "Open MPI's mpirun" : "a Hydra (MPICH's or Intel MPI's mpirun)";
}

const char* Next(pmi::Kind served) {
  return served == pmi::Kind::kPmix ? "set launcher.options.program to its own mpirun, such as "
                                      "\"mpiexec.hydra\", build it with Open MPI, or "
                                      "leave out launcher.name and let dtrun start it"
                                    : "set launcher.options.program to Open MPI's mpirun, build it with "
                                      "MPICH, or leave out launcher.name and "
                                      "let dtrun start it";
}

}  // namespace

Status CheckMpi(const std::vector<std::string>& command, pmi::Kind served) {
  if (command.empty()) return {};
  std::error_code failure;
  const std::string cwd = std::filesystem::current_path(failure).string();
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  const Result<std::string> file = process::FindProgram(command[0], cwd, environment);
  if (!file) return {};  // starting it will report the error
  const std::string library = pmi::MpiLibraryOf(*file);
  const pmi::Kind own = pmi::KindOfLibrary(library);
  if (own == pmi::Kind::kNone || own == served) return {};
  return Error{
      DTRUN_FAILED_PRECONDITION,
      fmt::format("'{}' is linked with {} ({}), but {} has started it: every rank would be rank 0 of 1; {}",
                  command[0], ProgramsMpi(own), library, Launcher(served), Next(served))};
}

Loaded LoadedIn(const std::string& maps, pmi::Kind served) {
  const std::vector<std::string> found = node::FrameworksIn(maps);
  const auto has = [&](pmi::Kind kind) { return std::ranges::count(found, FrameworkOf(kind)) != 0; };
  if (has(served)) return Loaded::kOwn;
  return has(served == pmi::Kind::kPmix ? pmi::Kind::kPmi1 : pmi::Kind::kPmix) ? Loaded::kForeign
                                                                               : Loaded::kNone;
}

Loaded LoadedBy(pid_t process, pmi::Kind served) {
  std::string maps = ReadKernelFile(fmt::format("/proc/{}/maps", process));
  for (const process::Process& below : process::Descendants(process))
    maps += ReadKernelFile(fmt::format("/proc/{}/maps", below.pid));
  return LoadedIn(maps, served);
}

std::string ForeignText(pmi::Kind served) {
  const pmi::Kind other = served == pmi::Kind::kPmix ? pmi::Kind::kPmi1 : pmi::Kind::kPmix;
  return fmt::format(
      "it has loaded {}, but {} has started it: with that each rank works in a world of one, as rank 0 of 1; "
      "{}; "
      "job.isolated_ranks = \"allow\" if this is intended",
      ProgramsMpi(other), Launcher(served), Next(served));
}

}  // namespace dtrun::mpirun
