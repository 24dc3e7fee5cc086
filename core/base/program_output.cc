#include "core/base/program_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "core/base/fd.h"

namespace dtrun {
namespace {

std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

Result<pid_t> StartPrinting(ProgramCall& call, int to) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
  if (!call.folder.empty()) ::posix_spawn_file_actions_addchdir_np(&actions, call.folder.c_str());
  pid_t child = 0;
  const int problem =
      ::posix_spawn(&child, call.command.front().c_str(), &actions, nullptr, PointersTo(call.command).data(),
                    call.environment.empty() ? environ : PointersTo(call.environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return Error::System(fmt::format("start '{}'", call.command.front()), problem);
  return child;
}

}  // namespace

bool ProgramOutput::succeeded() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

Result<ProgramOutput> OutputOf(ProgramCall call) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::System("create a pipe", errno);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const Result<pid_t> child = StartPrinting(call, writing.get());
  if (!child) return child.error();
  writing.Reset();
  ProgramOutput output;
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t size = ::read(reading.get(), chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    output.text.append(chunk.data(), static_cast<std::size_t>(size));
  }
  while (::waitpid(*child, &output.status, 0) < 0) {
    if (errno != EINTR) return Error::System(fmt::format("wait for '{}'", call.command.front()), errno);
  }
  return output;
}

}  // namespace dtrun
