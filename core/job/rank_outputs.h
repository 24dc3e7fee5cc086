// Opens the outputs of a generation's ranks: their log files, and where else each rank's lines go.
//
// Called by the root's run before the ranks start; its loop thread.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/job/run.h"
#include "core/output/fold.h"
#include "core/output/output.h"
#include "core/plan/plan.h"

namespace dtrun::job {

// By rank; null: in the output of its process. `logs`: the generation's folder, open as `folder`. `fold` and
// `console` must outlive the outputs; `fold` may be null.
Result<std::vector<std::unique_ptr<output::RankOutput>>> OpenRankOutputs(const plan::Plan& plan,
                                                                         const std::filesystem::path& logs,
                                                                         int folder, Presenter& presenter,
                                                                         output::Console& console,
                                                                         output::Fold* fold);

}  // namespace dtrun::job
