#include "tools/dtrun/torchrun/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <system_error>

#include "core/base/error.h"
#include "tools/dtrun/torchrun/grammar.h"

namespace dtrun::torchrun {
namespace {

constexpr char kDefaultPrefix[] = "[${role_name}${local_rank}]:";

}  // namespace

output::Routes RoutesOf(const Arguments& arguments, const std::filesystem::path& attempt, int rank,
                        int local_rank, const std::string& host) {
  if (attempt.empty()) return {};
  const auto& filter = arguments.local_ranks_filter;
  const bool visible = filter.empty() || std::ranges::find(filter, local_rank) != filter.end();
  const int teed = arguments.tee.For(local_rank);
  const int kept = arguments.redirects.For(local_rank) | teed;
  const std::filesystem::path folder = attempt / std::to_string(local_rank);
  const std::string prefix = ExpandPrefix(arguments.log_line_prefix_template.value_or(kDefaultPrefix),
                                          {{"role_name", arguments.role},
                                           {"local_rank", std::to_string(local_rank)},
                                           {"rank", std::to_string(rank)},
                                           {"hostname", host}});
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

std::string AttemptName(int attempt) { return fmt::format("attempt_{}", attempt); }

output::Router MakeRouter(Arguments arguments, bool keeps_logs, std::map<int, int> local_ranks,
                          std::string host) {
  auto opened = std::make_shared<std::map<int, int>>();
  return [arguments = std::move(arguments), keeps_logs, local_ranks = std::move(local_ranks),
          host = std::move(host),
          opened](const std::filesystem::path& folder, int rank) -> Result<output::Routes> {
    const int local_rank = local_ranks.at(rank);
    if (!keeps_logs) return RoutesOf(arguments, {}, rank, local_rank, host);
    const std::filesystem::path attempt = folder / AttemptName((*opened)[rank]++);
    const std::filesystem::path own = attempt / std::to_string(local_rank);
    std::error_code failure;
    std::filesystem::create_directories(own, failure);
    if (failure) {
      Error error = Error::System(fmt::format("cannot create '{}'", own.string()), failure.value());
      error.text += "; choose a folder that can be written with --log-dir";
      return error;
    }
    return RoutesOf(arguments, attempt, rank, local_rank, host);
  };
}

}  // namespace dtrun::torchrun
