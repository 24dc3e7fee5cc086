// The traces of a generation's ranks, as files rank-N.trace beside their logs.
//
// Written by the root as the ranks' agents send them; its loop thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "core/base/result.h"
#include "core/plan/plan.h"

namespace dtrun::job {

// Appends the bytes to the trace of the rank, up to what the plan allows for one. Empty: the plan has no
// traces.
using KeepTrace = std::function<void(int rank, std::string_view bytes)>;

// `logs`: the generation's folder, open as `folder`. `note` gets the first error.
KeepTrace TraceFiles(const plan::Plan& plan, const std::filesystem::path& logs, int folder,
                     std::function<void(const Status&)> note);

}  // namespace dtrun::job
