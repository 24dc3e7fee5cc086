#include "core/process/rank_fifo.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnd = "end";

fs::path PathOf(const fs::path& folder, int local_rank, std::string_view what) {
  return folder / fmt::format("rank-{}.{}", local_rank, what);
}

std::string_view NameOf(output::Stream stream) { return stream == output::Stream::kOut ? "out" : "err"; }

Result<UniqueFd> Make(const fs::path& path, int access = O_RDONLY) {
  ::unlink(path.c_str());
  if (::mkfifo(path.c_str(), 0600) != 0) {
    return Error::System(fmt::format("make the pipe '{}'", path.string()), errno);
  }
  UniqueFd end(::open(path.c_str(), access | O_NONBLOCK | O_CLOEXEC));
  if (!end) return Error::System(fmt::format("open the pipe '{}'", path.string()), errno);
  return end;
}

Result<UniqueFd> Open(const fs::path& path) {
  UniqueFd end(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!end) return Error::System(fmt::format("open the pipe '{}' to the agent", path.string()), errno);
  return end;
}

}  // namespace

Result<UniqueFd> MakeRankFifo(const fs::path& folder, int local_rank, output::Stream stream) {
  return Make(PathOf(folder, local_rank, NameOf(stream)));
}

Result<UniqueFd> MakeEndFifo(const fs::path& folder, int local_rank) {
  return Make(PathOf(folder, local_rank, kEnd));
}

Result<UniqueFd> MakeKeptFifo(const fs::path& path) { return Make(path, O_RDWR); }

Result<UniqueFd> OpenEndFifo(const fs::path& store, int local_rank) {
  return Open(PathOf(store.parent_path(), local_rank, kEnd));
}

Status TellEnd(const UniqueFd& fifo, const RankEnd& end) {
  const auto size = static_cast<ssize_t>(sizeof(end));
  if (::write(fifo.get(), &end, sizeof(end)) == size) return {};
  return Error::System("tell the agent how the rank has ended", errno);
}

std::optional<RankEnd> ReadEnd(std::string_view bytes) {
  RankEnd end;
  if (bytes.size() != sizeof(end)) return std::nullopt;
  std::memcpy(&end, bytes.data(), sizeof(end));
  return end;
}

Status PrintToRankFifos(const fs::path& store, int local_rank) {
  for (const output::Stream stream : {output::Stream::kOut, output::Stream::kErr}) {
    const Result<UniqueFd> end = Open(PathOf(store.parent_path(), local_rank, NameOf(stream)));
    if (!end) return end.error();
    if (::dup2(end->get(), stream == output::Stream::kOut ? STDOUT_FILENO : STDERR_FILENO) < 0) {
      return Error::System("print to the agent", errno);
    }
  }
  return {};
}

}  // namespace dtrun::process
