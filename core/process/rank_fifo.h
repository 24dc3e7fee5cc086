// Named pipes for ranks that another program of the plan starts, such as mpirun. They carry each rank's
// output and its exit status. Each local rank has three, in the folder of the store's socket.
//
// The agent makes them and opens them for reading before that program starts; the process between it and a
// rank opens them for writing. Any thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string_view>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/output/output.h"

namespace dtrun::process {

// Makes the pipe, replacing an existing one, and opens it for non-blocking reads.
Result<UniqueFd> MakeRankFifo(const std::filesystem::path& folder, int local_rank, output::Stream stream);

// Redirects stdout and stderr of this process to the pipes. `store` is the store's socket.
Status PrintToRankFifos(const std::filesystem::path& store, int local_rank);

// The same for the pipe that carries the exit status.
Result<UniqueFd> MakeEndFifo(const std::filesystem::path& folder, int local_rank);
Result<UniqueFd> OpenEndFifo(const std::filesystem::path& store, int local_rank);

// Makes a pipe that never ends for its reader: a rank may open it again, and a process that holds it open
// does no harm.
Result<UniqueFd> MakeKeptFifo(const std::filesystem::path& path);

// Its message: the rank's pid, and its status as returned by waitpid(2).
struct RankEnd {
  pid_t pid = 0;
  int status = 0;
  int asked = 0;  // 1: killed by the SIGTERM with which its parent, an mpirun, ends its ranks
};
Status TellEnd(const UniqueFd& fifo, const RankEnd& end);
std::optional<RankEnd> ReadEnd(std::string_view bytes);

}  // namespace dtrun::process
