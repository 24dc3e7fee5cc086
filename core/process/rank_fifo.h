// Named pipes for ranks that another program of the plan starts, such as mpirun: what each prints, and how
// it ends. In the folder of the store's socket, three for each rank of a host by its local rank.
//
// The agent makes and reads them before that program starts; what stands between it and a rank
// opens them. Any thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string_view>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/output/output.h"

namespace dtrun::process {

// Makes one, in place of any there is, and opens it for reading; that end does not block.
Result<UniqueFd> MakeRankFifo(const std::filesystem::path& folder, int local_rank, output::Stream stream);

// Makes them stdout and stderr of this process. `store` is the store's socket.
Status PrintToRankFifos(const std::filesystem::path& store, int local_rank);

// The same for how a rank ends.
Result<UniqueFd> MakeEndFifo(const std::filesystem::path& folder, int local_rank);
Result<UniqueFd> OpenEndFifo(const std::filesystem::path& store, int local_rank);

// What goes through it: the process of the rank, and its status as waitpid(2) has it.
struct RankEnd {
  pid_t pid = 0;
  int status = 0;
};
Status TellEnd(const UniqueFd& fifo, const RankEnd& end);
std::optional<RankEnd> ReadEnd(std::string_view bytes);

}  // namespace dtrun::process
