#include "core/agent/rank_fifo.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace dtrun::agent {
namespace {

std::filesystem::path PathOf(const std::filesystem::path& folder, int local_rank, output::Stream stream) {
  return folder / fmt::format("rank-{}.{}", local_rank, stream == output::Stream::kOut ? "out" : "err");
}

}  // namespace

Result<UniqueFd> MakeRankFifo(const std::filesystem::path& folder, int local_rank, output::Stream stream) {
  const std::filesystem::path path = PathOf(folder, local_rank, stream);
  ::unlink(path.c_str());
  if (::mkfifo(path.c_str(), 0600) != 0) {
    return Error::System(fmt::format("make the pipe '{}'", path.string()), errno);
  }
  UniqueFd end(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!end) return Error::System(fmt::format("open the pipe '{}'", path.string()), errno);
  return end;
}

Status PrintToRankFifos(const std::filesystem::path& store, int local_rank) {
  for (const output::Stream stream : {output::Stream::kOut, output::Stream::kErr}) {
    const std::filesystem::path path = PathOf(store.parent_path(), local_rank, stream);
    const UniqueFd end(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!end) return Error::System(fmt::format("open the pipe '{}' to the agent", path.string()), errno);
    if (::dup2(end.get(), stream == output::Stream::kOut ? STDOUT_FILENO : STDERR_FILENO) < 0) {
      return Error::System("print to the agent", errno);
    }
  }
  return {};
}

}  // namespace dtrun::agent
