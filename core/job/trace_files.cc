#include "core/job/trace_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/base/fd.h"
#include "core/base/number.h"
#include "core/base/own_file.h"
#include "core/contract/environment.h"
#include "core/contract/trace.h"
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
