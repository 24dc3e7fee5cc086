#include <fmt/format.h>
#include <regex.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/number.h"
#include "core/base/read_file.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/job/run_dir.h"
#include "core/output/display.h"
#include "core/output/style.h"
#include "tools/dtrun/find_run.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;

struct LogsArguments {
  std::string job;
  std::string ranks;  // "0,4-7"; empty: all
  std::string grep;   // extended regular expression (POSIX); empty: all lines
  std::optional<std::size_t> tail;
  bool follow = false;
};

// Lines with a match. Without an expression, all.
class LineFilter {
 public:
  LineFilter() = default;
  ~LineFilter() {
    if (used_) ::regfree(&compiled_);
  }
  LineFilter(const LineFilter&) = delete;
  LineFilter& operator=(const LineFilter&) = delete;

  Status Use(const std::string& expression) {
    const int number = ::regcomp(&compiled_, expression.c_str(), REG_EXTENDED | REG_NOSUB);
    used_ = number == 0;
    if (used_) return {};
    std::array<char, 200> why{};
    ::regerror(number, &compiled_, why.data(), why.size());
    // The place: after the longest beginning that is an expression.
    std::size_t place = expression.size() - 1;
    for (regex_t part; place > 0; --place) {
      if (::regcomp(&part, expression.substr(0, place).c_str(), REG_EXTENDED | REG_NOSUB) != 0) continue;
      ::regfree(&part);
      break;
    }
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("--grep '{}': {}, at character {}: '{}'; write \\ before a character that is meant "
                    "literally",
                    expression, Lowercase(why.data()), place + 1, expression.substr(place))};
  }

  bool Takes(std::string_view line) const {
    if (!used_) return true;
    regmatch_t range{};
    range.rm_eo = static_cast<regoff_t>(line.size());
    return ::regexec(&compiled_, line.data(), 1, &range, REG_STARTEND) == 0;
  }

 private:
  regex_t compiled_{};
  bool used_ = false;
};

// What a terminal shows of a line that a progress bar has written again and again.
std::string LastUpdate(std::string_view line) {
  const auto end = line.find_last_not_of('\r');
  if (end == line.npos) return {};
  const auto begin = line.substr(0, end).rfind('\r');
  return std::string(begin == line.npos ? line : line.substr(begin + 1));
}

// A file of one rank, read as it grows.
struct LogOfRank {
  int rank = 0;
  UniqueFd file;
  std::string rest;  // an incomplete line
  output::TamedLines tamed;
};

class LogReader {
 public:
  LogReader(fs::path run, std::optional<std::vector<int>> ranks)
      : run_(std::move(run)), wanted_(std::move(ranks)) {}

  LineFilter filter;

  // Opens the files that are new, in the order of generations and ranks.
  void Open() {
    for (int generation = 0;; ++generation) {
      const fs::path folder = generation == 0 ? run_ : run_ / fmt::format("generation-{}", generation);
      const fs::path of_torchrun = run_ / fmt::format("attempt_{}", generation);
      std::error_code none;
      if (!fs::is_directory(folder, none) && !fs::is_directory(of_torchrun, none)) return;
      Files found;
      for (const fs::path& file : EntriesOf(folder)) {
        const std::string name = file.filename().string(), kind = file.extension().string();
        if (!name.starts_with("rank-") || (kind != ".out" && kind != ".err")) continue;
        Take(std::string_view(name).substr(5, name.size() - 5 - kind.size()), file, &found);
      }
      for (const fs::path& rank : EntriesOf(of_torchrun)) {
        for (const char* const name : {"stdout.log", "stderr.log"}) {
          if (fs::exists(rank / name, none)) Take(rank.filename().string(), rank / name, &found);
        }
      }
      OpenAll(found);
    }
  }

  bool found() const { return !logs_.empty(); }
  // The last rank that has a file, wanted or not; -1: none has.
  int last() const { return last_; }
  // Whether any line of a file that was read has been met, printed or not.
  bool met() const { return met_; }

  // Prints what the files have gained. `tail`: only the last lines of each. `end`: also incomplete lines.
  void Print(std::optional<std::size_t> tail, bool end) {
    for (LogOfRank& log : logs_) PrintOne(log, tail, end);
    (void)std::fflush(stdout);
  }

 private:
  using Files = std::map<std::pair<int, std::string>, fs::path>;

  void Take(std::string_view number, const fs::path& file, Files* found) {
    const auto rank = NumberOf<int>(number);
    if (!rank || seen_.contains(file)) return;
    last_ = std::max(last_, *rank);
    if (wanted_ && !std::ranges::binary_search(*wanted_, *rank)) return;
    (*found)[{*rank, file.filename().string() == "stdout.log" ? ".out" : file.extension().string()}] = file;
  }

  void OpenAll(const Files& found) {
    for (const auto& [key, file] : found) {
      seen_.insert(file);
      largest_ = std::max(largest_, key.first);
      Result<UniqueFd> open = OpenForeignFile(file);
      if (open) {
        LogOfRank log;
        log.rank = key.first;
        log.file = *std::move(open);
        logs_.push_back(std::move(log));
      } else {
        PrintMessage("dtrun: {}\n", open.error().text);
      }
    }
  }

  void PrintOne(LogOfRank& log, std::optional<std::size_t> tail, bool end) {
    std::vector<std::string> last;
    constexpr std::size_t kPiece = std::size_t{64} << 10;
    std::string piece(kPiece, '\0');
    const auto take = [&](std::string_view line) {
      met_ = true;
      const std::string shown = LastUpdate(line);
      if (!filter.Takes(shown)) return;
      if (!tail) return Show(log, shown);
      last.push_back(shown);
      if (last.size() > 2 * *tail + 1)
        last.erase(last.begin(), last.end() - static_cast<std::ptrdiff_t>(*tail));
    };
    for (ssize_t size = 0; (size = ::read(log.file.get(), piece.data(), piece.size())) > 0;) {
      const std::size_t old = log.rest.size();
      const bool updates =
          std::string_view(piece).substr(0, static_cast<std::size_t>(size)).find('\r') != std::string::npos;
      log.rest.append(piece, 0, static_cast<std::size_t>(size));
      std::size_t begin = 0;
      for (std::size_t stop = old; (stop = log.rest.find('\n', stop)) != std::string::npos; begin = ++stop)
        take(std::string_view(log.rest).substr(begin, stop - begin));
      log.rest.erase(0, begin);
      if (updates) log.rest = LastUpdate(log.rest);  // a progress bar may never end its line
    }
    if (end && !log.rest.empty()) take(std::exchange(log.rest, {}));
    const std::size_t skipped = tail && last.size() > *tail ? last.size() - *tail : 0;
    for (std::size_t i = skipped; i < last.size(); ++i) Show(log, last[i]);
  }

  void Show(LogOfRank& log, std::string_view line) {
    const std::string label = output::LabelOf({log.rank, largest_ + 1}, output::Prefix::kRank);
    std::string text = std::string(line) + "\n";
    if (terminal_) {
      std::string tamed;
      log.tamed.Append(text, false, &tamed);
      text = std::move(tamed);
    }
    WriteOutput(label + text);
  }

  const fs::path run_;
  const std::optional<std::vector<int>> wanted_;
  const bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
  std::vector<LogOfRank> logs_;
  std::set<fs::path> seen_;
  int largest_ = 0;
  int last_ = -1;
  bool met_ = false;
};

Json VerdictIn(const fs::path& run) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  return ParseJson(ReadForeignFile(run / "verdict.json", kMost));
}

int ExitCodeOf(const fs::path& run) {
  const Json verdict = VerdictIn(run);
  const auto code = verdict.is_object() ? verdict.find("exit_code") : verdict.end();
  if (verdict.is_object() && code != verdict.end() && code->is_number_integer()) return code->get<int>();
  PrintMessage("dtrun: the job's exit code is not known: it left no verdict in '{}'\n", run.string());
  return 1;
}

// Empty: it started, or may yet.
std::string WhyNotStarted(const fs::path& run) {
  const Json verdict = VerdictIn(run);
  if (!verdict.is_object() || verdict.value("result", Json()) != "not started") return {};
  const Json why = verdict.value("error", Json());
  return why.is_string() ? why.get<std::string>() : "verdict.json does not tell why";
}

int Logs(const LogsArguments& arguments) {
  std::optional<std::vector<int>> ranks;
  if (!arguments.ranks.empty()) {
    ranks = ReadNumberList(arguments.ranks);
    if (!ranks)
      return Refuse(fmt::format("--rank: '{}' is not a list of ranks; write 0,4-7", arguments.ranks));
  }
  const auto run = FindRun(arguments.job);
  if (!run) return Refuse(run.error().text);
  std::error_code none;
  const fs::path real = fs::canonical(*run, none);
  const fs::path folder = real.empty() ? *run : real;
  if (Status may = MayRead(folder); !may) return Refuse(may.error().text);
  LogReader reader(folder, ranks);
  if (!arguments.grep.empty()) {
    if (Status used = reader.filter.Use(arguments.grep); !used) return Refuse(used.error().text);
  }
  bool live = arguments.follow && job::IsLive(folder) == std::optional(true);
  reader.Open();
  reader.Print(arguments.tail, !live);
  while (live) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    live = job::IsLive(folder) == std::optional(true);
    reader.Open();
    reader.Print(std::nullopt, !live);
    if (!FlushOutput()) break;
  }
  const std::string why = reader.met() || live ? "" : WhyNotStarted(folder);
  if (!why.empty()) {
    PrintMessage("dtrun: the job did not start: {}\n", output::Tamed(why));
    return 1;
  }
  if (!reader.found() && reader.last() >= 0) {
    PrintMessage("dtrun: '{}' has no output of rank {}; the last rank there is {}\n", folder.string(),
                 arguments.ranks, reader.last());
    return 1;
  }
  if (!reader.found()) {
    PrintMessage(
        "dtrun: '{}' has no output of {} ('dtrun torchrun' keeps it with -r 3 or -t 3); 'dtrun "
        "explain {}' says how the job went\n",
        folder.string(), ranks ? "rank " + arguments.ranks : "any rank", folder.string());
    return 1;
  }
  if (!reader.met() && !live)
    PrintMessage("dtrun: these ranks have printed nothing: '{}'\n", folder.string());
  return arguments.follow ? ExitCodeOf(folder) : 0;
}

}  // namespace

void AddLogs(CLI::App& app, ConfigArguments*, Verbs* to) {
  const auto own = std::make_shared<LogsArguments>();
  CLI::App* logs = app.add_subcommand("logs", "What the ranks of a job printed, live or past");
  AddJobWord(logs, &own->job,
             "A job's name, a run directory or a folder above it; none: the newest run started in this "
             "folder, or your only live job");
  logs->add_option("--rank", own->ranks, "Of these ranks alone: 0,4-7")->type_name("LIST");
  logs->add_option("--grep", own->grep, "Lines that match this extended regular expression")->type_name("RE");
  logs->add_option("-n,--tail", own->tail, "The last N lines of each file")->type_name("N")->check(NotACount);
  logs->add_flag("-f,--follow", own->follow, "Print new lines until the job ends, and exit with its code");
  logs->footer(
      "All lines go to standard output, those of one rank's file after another, with the rank in front. Exit "
      "code: 0, with --follow the job's; 1 when ranks have printed into no file; 2 for a user error.");
  to->push_back({logs, [own] { return Logs(*own); }});
}

}  // namespace dtrun::cli
