#include "core/job/rank_outputs.h"

#include <cstddef>
#include <utility>

#include "core/base/own_file.h"
#include "core/contract/environment.h"

namespace dtrun::job {

Result<std::vector<std::unique_ptr<output::RankOutput>>> OpenRankOutputs(const plan::Plan& plan,
                                                                         const std::filesystem::path& logs,
                                                                         int folder, Presenter& presenter,
                                                                         output::Console& console,
                                                                         output::Fold* fold) {
  std::vector<std::unique_ptr<output::RankOutput>> outputs(static_cast<std::size_t>(plan.world_size()));
  for (const plan::Process& process : plan.processes) {
    const int count = process.env.contains(contract::kRankOutputs) ? process.rank_count : 1;
    for (int rank = process.rank; rank < process.rank + count; ++rank) {
      auto routes = presenter.RoutesOf(plan, logs, rank);
      if (!routes) return routes.error();
      auto output = output::RankOutput::Open(
          {logs, FileModeIn(plan.log_mode), folder},
          {rank, plan.world_size(), plan.hosts[static_cast<std::size_t>(process.host)].name}, plan.output,
          console, *std::move(routes), fold);
      if (!output) return output.error();
      outputs[static_cast<std::size_t>(rank)] = *std::move(output);
    }
  }
  return outputs;
}

}  // namespace dtrun::job
