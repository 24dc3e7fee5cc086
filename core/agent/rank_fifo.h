// Named pipes for what ranks print that another program of the plan starts, such as mpirun: in
// the folder of the store's socket, two for each rank of a host by its local rank.
//
// The agent makes and reads them before that program starts; what stands between it and a rank
// opens them. Any thread.
#pragma once

#include <filesystem>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/output/output.h"

namespace dtrun::agent {

// Makes one, in place of any there is, and opens it for reading; that end does not block.
Result<UniqueFd> MakeRankFifo(const std::filesystem::path& folder, int local_rank, output::Stream stream);

// Makes them stdout and stderr of this process. `store` is the store's socket.
Status PrintToRankFifos(const std::filesystem::path& store, int local_rank);

}  // namespace dtrun::agent
