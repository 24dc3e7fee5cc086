#include "core/pmi/pmix_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "core/base/fd.h"

namespace dtrun::pmi {
namespace {

std::filesystem::path& Place() {
  static std::filesystem::path place;
  return place;
}

// What it prints until it ends, and how it ended (as waitpid says).
Result<std::pair<std::string, int>> Ask(const std::filesystem::path& program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::System("create a pipe", errno);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  std::string name = program.string(), word = kPmixCheck;
  char* const argv[] = {name.data(), word.data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  pid_t child = 0;
  const int problem = ::posix_spawn(&child, name.c_str(), &actions, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return Error::System(fmt::format("start '{}'", name), problem);
  writing.Reset();
  std::string printed;
  std::array<char, 4096> chunk;
  for (ssize_t size = 0; (size = ::read(reading.get(), chunk.data(), chunk.size())) > 0;)
    printed.append(chunk.data(), static_cast<std::size_t>(size));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error::System(fmt::format("wait for '{}'", name), errno);
  }
  return std::pair(std::move(printed), status);
}

}  // namespace

std::filesystem::path PmixProgram() {
  if (!Place().empty()) return Place();
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  return self.parent_path().parent_path() / "lib/dtrun/dtrun-pmix";
}

void SetPmixProgram(std::filesystem::path program) { Place() = std::move(program); }

Status PmixBuilt() {
#ifdef DTRUN_HAS_PMIX
  return {};
#else
  return Error{DTRUN_UNSUPPORTED,
               "this dtrun was built without PMIx; install libpmix-dev and build it again, or start the "
               "job with mpirun"};
#endif
}

namespace {

Status TryToOpen() {
  if (Status built = PmixBuilt(); !built) return built;
  const std::filesystem::path program = PmixProgram();
  if (::access(program.c_str(), X_OK) != 0) {
    const int number = errno;
    return Error{
        DTRUN_NOT_FOUND,
        Error::System(fmt::format("cannot start the PMIx server '{}'", program.string()), number).text +
            "; install dtrun again, or start the job with mpirun"};
  }
  const Result<std::pair<std::string, int>> asked = Ask(program);
  if (!asked) return asked.error();
  const auto& [printed, status] = *asked;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (!printed.empty()) return Error{DTRUN_NOT_FOUND, printed};
  return Error{DTRUN_INTERNAL, fmt::format("the PMIx server '{}' does not start; run '{} {}' by hand",
                                           program.string(), program.string(), kPmixCheck)};
}

}  // namespace

Status PmixOpens() {
  static const Status opens = TryToOpen();
  return opens;
}

}  // namespace dtrun::pmi
