#include "tools/dtrun/torchrun/routes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/own_folder.h"
#include "tools/dtrun/torchrun/grammar.h"

namespace dtrun::torchrun {
namespace {

constexpr char kDefaultPrefix[] = "[${role_name}${local_rank}]:";

// attempt_N in the run's folder. dtrun keeps the logs of the Nth restart in generation-N there.
std::filesystem::path AttemptOf(const std::filesystem::path& folder) {
  constexpr std::string_view kGeneration = "generation-";
  const std::string name = folder.filename().string();
  if (!name.starts_with(kGeneration)) return folder / "attempt_0";
  return folder.parent_path() / ("attempt_" + name.substr(kGeneration.size()));
}

}  // namespace

output::Routes RoutesOf(const Arguments& arguments, const std::filesystem::path& attempt, int rank,
                        const Seat& seat) {
  if (attempt.empty()) return {};
  const int local_rank = seat.local_rank;
  const auto& filter = arguments.local_ranks_filter;
  const bool visible = filter.empty() || std::ranges::find(filter, local_rank) != filter.end();
  const int teed = arguments.tee.For(local_rank);
  const int kept = arguments.redirects.For(local_rank) | teed;
  const std::filesystem::path folder = attempt / FolderOf(seat);
  const std::string prefix = ExpandPrefix(arguments.log_line_prefix_template.value_or(kDefaultPrefix),
                                          {{"role_name", arguments.role},
                                           {"local_rank", std::to_string(local_rank)},
                                           {"rank", std::to_string(rank)},
                                           {"hostname", seat.host}});
  const auto route = [&](int stream, const std::string& name, const std::vector<std::string>& wanted) {
    output::Route to;
    const bool is_teed = (teed & stream) != 0;
    const bool is_kept = (kept & stream) != 0;
    to.shown = visible && (is_teed || !is_kept);
    if (is_kept) to.file = folder / (name + ".log");
    if (is_teed) to.prefix = prefix;
    if (is_teed && visible && !wanted.empty()) {
      to.wanted = wanted;
      to.wanted_file = attempt / ("filtered_" + name + ".log");
    }
    return to;
  };
  return {route(kStdout, "stdout", arguments.duplicate_stdout_filters),
          route(kStderr, "stderr", arguments.duplicate_stderr_filters)};
}

std::filesystem::path FolderOf(const Seat& seat) {
  const std::string own = std::to_string(seat.local_rank);
  return seat.node == 0 ? std::filesystem::path(own)
                        : std::filesystem::path(fmt::format("node_{}", seat.node)) / own;
}

Result<output::Routes> RouteRank(const Arguments& arguments, bool keeps_logs,
                                 const std::filesystem::path& logs, int rank, const Seat& seat) {
  if (!keeps_logs) return RoutesOf(arguments, {}, rank, seat);
  const std::filesystem::path attempt = AttemptOf(logs);
  const std::filesystem::path own = attempt / FolderOf(seat);
  if (const auto made = OpenFolder(own, true); !made) {
    Error error{DTRUN_SYSTEM, fmt::format("cannot create '{}': {}", own.string(), made.error().text)};
    error.text += "; choose a folder that can be written with --log-dir";
    return error;
  }
  return RoutesOf(arguments, attempt, rank, seat);
}

}  // namespace dtrun::torchrun
