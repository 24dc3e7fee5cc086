// The files of a generation's ranks: their output, and their traces beside it as rank-N.trace.
//
// Made by the root's run before the ranks start, and written as their agents send; its loop thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/output/fold.h"
#include "core/output/output.h"
#include "core/plan/plan.h"

namespace dtrun::job {

class Presenter;  // core/job/run.h

// By rank; null: in the output of its process. `logs`: the generation's folder, open as `folder`. `fold` and
// `console` must outlive the outputs; `fold` may be null.
Result<std::vector<std::unique_ptr<output::RankOutput>>> OpenRankOutputs(const plan::Plan& plan,
                                                                         const std::filesystem::path& logs,
                                                                         int folder, Presenter& presenter,
                                                                         output::Console& console,
                                                                         output::Fold* fold);

// Appends the bytes to the trace of the rank, up to what the plan allows for one. Empty: the plan has no
// traces.
using KeepTrace = std::function<void(int rank, std::string_view bytes)>;

// `logs`: the generation's folder, open as `folder`. `note` gets the first error.
KeepTrace TraceFiles(const plan::Plan& plan, const std::filesystem::path& logs, int folder,
                     std::function<void(const Status&)> note);

}  // namespace dtrun::job
