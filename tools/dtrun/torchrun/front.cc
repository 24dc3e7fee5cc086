#include "tools/dtrun/torchrun/front.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/number.h"
#include "core/base/own_file.h"
#include "core/base/read_file.h"
#include "core/base/text.h"
#include "core/process/process.h"
#include "core/verdict/cause.h"
#include "core/verdict/text.h"
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

// A rank's folder within its attempt: LOCAL_RANK, or node_N/LOCAL_RANK on nodes other than the first.
std::string FolderOf(const Seat& seat) {
  return seat.node == 0 ? std::to_string(seat.local_rank)
                        : fmt::format("node_{}/{}", seat.node, seat.local_rank);
}

constexpr std::size_t kWidest = 60;
constexpr char kNoTraceback[] =
    "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";

std::string SignalName(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? "" : std::string("SIG") + name;
}

// The content of a rank's file is untrusted.
Json ReadErrorFile(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  return ParseJson(ReadForeignFile(path, kMostBytes));
}

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : JsonLine(value);
}

// Reads the rank's own error file: {"message": {"message": ..., "extraInfo": {"py_callstack": ...,
// "timestamp": "..."}}}, or {"message": "...", "timestamp": ...}.
void AddErrorFile(const std::string& path, Failure* failure) {
  const Json data = ReadErrorFile(path);
  if (!data.is_object() || !data.contains("message")) return;
  failure->error_file = path;
  const Json& message = data["message"];
  const Json& details = message.is_object() && message.contains("extraInfo") ? message["extraInfo"] : data;
  if (!message.is_object()) {
    failure->message = TextOf(message);
  } else if (details.is_object() && details.contains("py_callstack")) {
    failure->message = TextOf(details["py_callstack"]);
  } else {
    failure->message = TextOf(message.contains("message") ? message["message"] : message);
  }
  if (details.is_object() && details.contains("timestamp")) {
    const std::string text = TextOf(details["timestamp"]);
    std::string_view rest = text;
    if (const auto seconds = TakeNumber<std::time_t>(&rest)) failure->time = *seconds;
  }
}

std::string TimeText(std::time_t time) {
  std::tm local{};
  ::localtime_r(&time, &local);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d_%H:%M:%S", &local)};
}

std::string FailureText(std::size_t index, const Failure& failure) {
  const std::string signal = failure.exit_code < 0 ? SignalName(-failure.exit_code) : "";
  return fmt::format(
      "[{}]:\n"
      "  time      : {}\n"
      "  host      : {}\n"
      "  rank      : {} (local_rank: {})\n"
      "  exitcode  : {} (pid: {}) {}\n"
      "  error_file: {}\n"
      "  traceback : {}",
      index, TimeText(failure.time), failure.host, failure.rank, failure.local_rank, failure.exit_code,
      failure.pid, signal.empty() ? "" : fmt::format(" ({})", signal),
      failure.error_file.empty() ? "<N/A>" : failure.error_file, Indented(failure.message, "  "));
}

// "rank 1 stood still, in time.sleep at train.py:40; dtrun ended it by SIGTERM once rank 0 had failed"
std::string WhyBlamed(const verdict::Facts& facts, const verdict::Cause& cause,
                      const verdict::RankFacts& rank) {
  const bool suspected = cause.suspicion.kind != verdict::Suspicion::Kind::kNone;
  std::string why = suspected ? verdict::SuspicionName(cause.suspicion.kind) : "stood still";
  if (rank.ending->stopped_by != 0) why = "was stopped by " + process::SignalName(rank.ending->stopped_by);
  std::string after;
  if (const int first = facts.ranks[cause.first].blamed(); suspected && first != rank.rank)
    after = fmt::format(" once rank {} had failed", first);
  const std::string place = verdict::PlaceText(rank);
  return fmt::format("rank {} {}{}; dtrun ended it by {}{}", rank.rank, why,
                     place.empty() ? "" : ", " + place, process::SignalName(rank.signal_sent), after);
}

std::size_t WidthOf(const std::string& text) {
  std::size_t widest = 0;
  for (const std::string_view line : LinesOf(text)) widest = std::max(widest, line.size());
  return widest;
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

std::optional<Failures> FailuresOf(const verdict::Facts& facts, std::time_t started,
                                   const std::map<int, int>& local_ranks,
                                   const std::map<int, std::string>& error_files) {
  const verdict::Cause cause = verdict::FindCause(facts);
  if (cause.kind != verdict::Cause::Kind::kRank) return std::nullopt;
  const int root = facts.ranks[cause.index].blamed();
  Failures failures;
  for (const verdict::RankFacts& rank : facts.ranks) {
    if (!rank.ending || (rank.ending->signal == 0 && rank.ending->code == 0)) continue;
    const process::Ending& ending = *rank.ending;
    Failure failure;
    failure.rank = rank.rank;
    if (const auto local = local_ranks.find(failure.rank); local != local_ranks.end()) {
      failure.local_rank = local->second;
    }
    failure.host = rank.host;
    failure.pid = rank.pid;
    failure.exit_code = ending.signal != 0 ? -ending.signal : ending.code;
    failure.time = started + std::chrono::floor<std::chrono::seconds>(rank.ended_at).count();
    failure.message = ending.signal != 0 ? fmt::format("Signal {} ({}) received by PID {}", ending.signal,
                                                       process::SignalName(ending.signal), failure.pid)
                                         : kNoTraceback;
    if (failure.rank == root && rank.signal_sent != 0) failure.message = WhyBlamed(facts, cause, rank);
    const auto file = error_files.find(failure.rank);
    if (file != error_files.end() && !file->second.empty()) AddErrorFile(file->second, &failure);
    if (failure.rank == root) failures.root = failures.all.size();
    failures.all.push_back(std::move(failure));
  }
  if (failures.all.empty()) return std::nullopt;
  return failures;
}

std::string Summary(const std::string& entry, const Failures& failures) {
  const std::string title = entry + " FAILED";
  std::size_t width = title.size();
  std::string root, others;
  for (std::size_t i = 0; i < failures.all.size(); ++i) {
    const std::string text = FailureText(i, failures.all[i]);
    width = std::max(width, WidthOf(text));
    if (i == failures.root) {
      root = text;
    } else {
      others += (others.empty() ? "" : "\n") + text;
    }
  }
  width = std::min(width, kWidest);
  const std::string border(width, '='), section(width, '-');
  return fmt::format("{}\n{}\n{}\nFailures:\n{}\n{}\nRoot Cause (first observed failure):\n{}\n{}\n", border,
                     title, section, others.empty() ? "  <NO_OTHER_FAILURES>" : others, section, root,
                     border);
}

std::string RootErrorFile(const Failures& failures) {
  const Failure& root = failures.all[failures.root];
  if (root.error_file.empty()) return {};
  Json data = ReadErrorFile(root.error_file);
  if (!data.is_object()) return {};
  if (data.contains("message") && data["message"].is_object()) data["message"]["errorCode"] = root.exit_code;
  return JsonLine(data);
}

}  // namespace dtrun::torchrun
