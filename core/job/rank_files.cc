#include "core/job/rank_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "core/base/fd.h"
#include "core/base/number.h"
#include "core/base/own_file.h"
#include "core/contract/environment.h"
#include "core/contract/trace.h"
#include "core/job/run.h"
#include "core/output/file_write.h"

namespace dtrun::job {
namespace {

// Beyond trace.size: the records that the rank writes at a limit.
constexpr std::uint64_t kLastRecords = 64 * sizeof(contract::TraceRecord);

struct RankTrace {
  UniqueFd file;
  std::uint64_t left = 0;
  bool failed = false;
};

}  // namespace

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

KeepTrace TraceFiles(const plan::Plan& plan, const std::filesystem::path& logs, int folder,
                     std::function<void(const Status&)> note) {
  if (plan.processes.empty() || !plan.processes[0].env.contains(contract::kTrace)) return {};
  const auto size = NumberOf<std::uint64_t>(plan.processes[0].env.find(contract::kTrace)->second);
  auto traces = std::make_shared<std::vector<RankTrace>>(static_cast<std::size_t>(plan.world_size()));
  for (RankTrace& trace : *traces) trace.left = size.value_or(0) + kLastRecords;
  UniqueFd open(::fcntl(folder, F_DUPFD_CLOEXEC, 0));
  return [traces, logs, mode = FileModeIn(plan.log_mode), note = std::move(note),
          to = std::make_shared<UniqueFd>(std::move(open))](int rank, std::string_view bytes) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= traces->size()) return;
    RankTrace& trace = (*traces)[static_cast<std::size_t>(rank)];
    if (trace.failed) return;
    const std::filesystem::path path = logs / fmt::format("rank-{}.trace", rank);
    const auto fail = [&](Error error) {
      trace.failed = true;
      error.text += "; the rank's trace ends here";
      note(error);
    };
    if (!trace.file) {
      Result<UniqueFd> file = MakeOwnFileAt(to->get(), path, mode);
      if (!file) return fail(file.error());
      trace.file = *std::move(file);
    }
    bytes = bytes.substr(0, trace.left);
    trace.left -= bytes.size();
    if (const int number = output::WriteAll(trace.file.get(), bytes); number != 0)
      fail(Error::System(fmt::format("cannot write '{}'", path.string()), number));
  };
}

}  // namespace dtrun::job
