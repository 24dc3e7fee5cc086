// The page of metrics.listen: the newest numbers of a job as OpenMetrics 1.0 text.
//
// Pure; any thread.
#pragma once

#include <functional>
#include <string>

#include "core/control/messages.h"
#include "core/metrics/journal.h"

namespace dtrun::metrics {

// The names of dtrun's own numbers in the journal.
inline constexpr char kRanks[] = "dtrun_job_ranks", kRanksAlive[] = "dtrun_job_ranks_alive",
                      kRestarts[] = "dtrun_job_restarts_total", kQuiet[] = "dtrun_job_quiet_seconds",
                      kProcessor[] = "dtrun_rank_cpu_seconds_total", kMemory[] = "dtrun_rank_memory_bytes";

// `host_of`: the host of a rank, for its labels.
std::string OpenMetrics(const Journal& journal, const control::Answer& now,
                        const std::function<std::string(int rank)>& host_of);

// For the value of a label: with \\, \" and \n.
std::string LabelValue(std::string_view text);

}  // namespace dtrun::metrics
