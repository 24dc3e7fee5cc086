#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/json.h"
#include "core/base/number.h"
#include "core/base/standard_output.h"
#include "core/control/client.h"
#include "core/observe/shares.h"
#include "core/output/display.h"
#include "core/verdict/verdict.h"
#include "core/wire/json.h"
#include "tools/dtrun/find_run.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct TopArguments {
  std::string job;
  double seconds = 0;  // 0: not given
  bool json = false;
};

constexpr std::chrono::milliseconds kBetweenLooks{250};
constexpr int kLongestLook = 86'400;
constexpr std::size_t kWithoutColumns = 1000;  // in a pipe or file, nothing is cut

std::size_t Columns() {
  const int columns = ColumnsOfOutput();
  return columns > 0 ? static_cast<std::size_t>(columns) : kWithoutColumns;
}

std::size_t Rows() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

std::string HostOf(const control::Answer& answer, int rank) {
  const control::RankNow* const process = answer.Find(rank);
  return process == nullptr ? "?" : process->host;
}

std::string BytesText(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.1f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.0f} kB", bytes / 1e3);
}

// The rank that delays the others most comes first.
std::vector<observe::RankShare> Sorted(const observe::Shares& shares) {
  std::vector<observe::RankShare> ranks = shares.Ranks();
  std::ranges::stable_sort(ranks, std::greater(), &observe::RankShare::delays);
  return ranks;
}

// Where the rank is, or that it has left.
std::string PlaceOf(const control::Answer& answer, const observe::RankShare& share) {
  const control::RankNow* const process = answer.Find(share.rank);
  return process != nullptr && process->ended ? "has exited" : share.now;
}

std::string Line(std::string text, std::size_t columns) {
  if (text.size() > columns) text = text.substr(0, columns - 3) + "...";
  return text + "\n";
}

Json Document(const control::Answer& answer, const observe::Shares& shares) {
  Json ranks = Json::array();
  for (const observe::RankShare& rank : shares.Ranks()) {
    ranks.push_back({{"rank", rank.rank},
                     {"host", HostOf(answer, rank.rank)},
                     {"looks", rank.looks},
                     {"delays_others", rank.delays},
                     {"waits_for_ranks", rank.waits},
                     {"waits_for_input", rank.input},
                     {"saves", rank.saves},
                     {"processors", rank.processors},
                     {"bytes_per_second", rank.bytes},
                     {"resident_bytes", rank.resident},
                     {"major_faults_per_second", rank.faults},
                     {"host_network_bytes_per_second", rank.network},
                     {"gpu", wire::ToJson(rank.gpu)},
                     {"place", PlaceOf(answer, rank)}});
  }
  const auto straggler = shares.Straggler();
  return {{"job", answer.job},
          {"state", answer.state},
          {"joining", answer.joining.empty() ? Json(nullptr) : Json(answer.joining)},
          {"looks", shares.looks()},
          {"straggler", straggler ? Json(straggler->rank) : Json(nullptr)},
          {"ranks", ranks}};
}

struct Column {
  std::string head;
  std::size_t width;
  std::size_t from;  // terminals that have so many columns show it
  std::function<std::string(const observe::RankShare&)> text;
  bool left = false;

  std::string Cell(const std::string& content) const {
    return left ? fmt::format("{:<{}.{}} ", content, width, width) : fmt::format("{:>{}} ", content, width);
  }
};

// Those that fit; PLACE comes after them.
std::vector<Column> ColumnsFor(std::size_t columns, const control::Answer& answer,
                               const std::vector<observe::RankShare>& ranks) {
  using Share = observe::RankShare;
  constexpr std::size_t kAlways = 0, kMedium = 80, kWide = 120, kLongestHost = 20;
  std::size_t host = 4;
  for (const Share& rank : ranks) host = std::max(host, HostOf(answer, rank.rank).size());
  const auto percent = [](double Share::*member) {
    return [member](const Share& rank) { return fmt::format("{:.0f}%", 100 * rank.*member); };
  };
  const auto bytes = [](double Share::*member) {
    return [member](const Share& rank) { return BytesText(rank.*member) + "/s"; };
  };
  std::vector<Column> all = {
      {"RANK", 5, kAlways, [](const Share& rank) { return std::to_string(rank.rank); }},
      {"HOST", std::min(host, kLongestHost), kMedium,
       [&answer](const Share& rank) { return HostOf(answer, rank.rank); }, true},
      {"DELAYS", 6, kAlways, percent(&Share::delays)},
      {"WAITS", 6, kAlways, percent(&Share::waits)},
      {"INPUT", 6, kMedium, percent(&Share::input)},
      {"SAVES", 6, kWide, percent(&Share::saves)},
      {"CPU", 5, kAlways, percent(&Share::processors)},
      {"MEMORY", 8, kWide, [](const Share& rank) { return BytesText(static_cast<double>(rank.resident)); }},
      {"FAULTS", 7, kWide, [](const Share& rank) { return fmt::format("{:.0f}/s", rank.faults); }},
      {"I/O", 10, kMedium, bytes(&Share::bytes)},
      {"HOST NET", 10, kWide, bytes(&Share::network)},
  };
  if (std::ranges::any_of(ranks, [](const Share& rank) { return rank.gpu.has_value(); })) {
    const auto use = [](const Share& rank) { return rank.gpu.value_or(verdict::GpuUse{}); };
    all.push_back({"GPU", 4, kMedium, [use](const Share& rank) {
                     return rank.gpu ? fmt::format("{}%", use(rank).busy_percent) : "-";
                   }});
    all.push_back({"GPU MEM", 8, kWide, [use](const Share& rank) {
                     return rank.gpu ? BytesText(static_cast<double>(use(rank).memory)) : "-";
                   }});
    all.push_back({"CLOCK", 9, kWide, [use](const Share& rank) {
                     return rank.gpu ? fmt::format("{}/{}", use(rank).clock_mhz, use(rank).most_mhz) : "-";
                   }});
  }
  std::erase_if(all, [columns](const Column& column) { return column.from > columns; });
  return all;
}

// The table, of `columns` characters and at most `rows` ranks.
std::string TopText(const control::Answer& answer, const observe::Shares& shares, std::size_t columns,
                    std::size_t rows) {
  std::string title =
      fmt::format("job '{}' {}, {}", answer.job, answer.state, verdict::FormatElapsed(answer.age));
  if (answer.quiet >= std::chrono::seconds(5))
    title += fmt::format(", no output for {}", verdict::FormatElapsed(answer.quiet));
  title += fmt::format("; {} looks", shares.looks());
  std::string out = Line(title, columns);
  if (!answer.joining.empty()) out += answer.joining + "\n";  // whole: the terminal wraps it
  const auto straggler = shares.Straggler();
  if (straggler) out += observe::StragglerText(*straggler) + "\n";
  const std::vector<observe::RankShare> ranks = Sorted(shares);
  const std::vector<Column> table = ColumnsFor(columns, answer, ranks);
  std::string head;
  if (ranks.empty()) return out;
  for (const Column& column : table) head += column.Cell(column.head);
  out += Line(head + " PLACE", columns);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == rows) {
      out += fmt::format("and {} more rank{}\n", ranks.size() - rows, ranks.size() - rows == 1 ? "" : "s");
      break;
    }
    std::string line;
    for (const Column& column : table) line += column.Cell(column.text(ranks[i]));
    out += Line(line + " " + PlaceOf(answer, ranks[i]), columns);
    const std::string trouble = ranks[i].gpu ? ranks[i].gpu->Trouble() : "";
    if (!trouble.empty()) out += Line(fmt::format("{:>5} {}", "", trouble), columns);
  }
  if (!ranks.empty() && std::ranges::none_of(ranks, &observe::RankShare::in_source))
    out += "dtrun explain shows who waits for whom, dtrun stacks --native the lines of C and C++ programs\n";
  return out;
}

int Top(const TopArguments& arguments) {
  const auto run = FindRun(arguments.job, Needs::kLiveRun);
  if (!run) return Refuse(run.error().text);
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const bool once = arguments.json || arguments.seconds > 0 || !terminal;
  constexpr double kSeconds = 4;
  const auto until =
      Clock::now() + std::chrono::duration<double>(arguments.seconds > 0 ? arguments.seconds : kSeconds);
  observe::Shares shares;
  control::Answer last;
  for (;;) {
    const auto at = Clock::now();
    auto answer = control::AskJob(*run, {.what = control::What::kPlaces}, control::kPlacesLimit);
    if (!answer && once && shares.looks() > 0) break;  // the job has ended meanwhile
    if (!answer) return Refuse(answer.error().text);
    if (answer->generation != last.generation) shares = {};
    last = *std::move(answer);
    if (!last.places.empty()) shares.Add(last.places, at);
    if (once && Clock::now() >= until) break;
    if (!once) {
      WriteOutput("\033[H\033[J" + output::TamedMessage(TopText(last, shares, Columns(), Rows() - 6)));
    }
    if (!FlushOutput()) return 0;
    std::this_thread::sleep_until(at + kBetweenLooks);
  }
  WriteOutput(arguments.json ? JsonDocument(1, Document(last, shares))
                             : output::TamedMessage(TopText(last, shares, Columns(), shares.Ranks().size())));
  return 0;
}

}  // namespace

void AddTop(CLI::App& app, ConfigArguments*, Verbs* to) {
  const auto own = std::make_shared<TopArguments>();
  CLI::App* verb = app.add_subcommand(
      "top", "Who delays whom in a running job: waiting, input, CPU and place of each rank");
  AddJobWord(verb, &own->job,
             "A job's name or run folder; none: the newest one of this folder, or your only live job");
  verb->add_option(
          "--seconds", own->seconds,
          "Look for so long, print once and end; 4 where the output is no terminal. Otherwise until Ctrl-C")
      ->type_name("S")
      ->check([](const std::string& word) {
        const auto seconds = NumberOf<double>(word);
        return seconds && *seconds > 0 && *seconds <= kLongestLook
                   ? std::string()
                   : fmt::format("'{}' is not a time; write a number of seconds up to {}", word,
                                 kLongestLook);
      });
  verb->add_flag("--json", own->json, "Machine-readable; prints once");
  verb->footer(
      "DELAYS is the share of looks in which the rank was elsewhere while the others waited for it. WAITS is "
      "the share in which it waited for other ranks, INPUT that for its data loader, SAVES that in which it "
      "wrote a checkpoint. FAULTS are page faults that waited for a disk. I/O is what the rank reads and "
      "writes, HOST NET what its host receives and sends. dtrun looks four times a second, from outside, "
      "and stops nothing. Exit code: 0; 2 when there is no such job.");
  to->push_back({verb, [own] { return Top(*own); }});
}

}  // namespace dtrun::cli
