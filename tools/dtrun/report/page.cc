#include "tools/dtrun/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/number.h"
#include "core/base/text.h"
#include "core/metrics/open_metrics.h"
#include "core/verdict/text.h"
#include "core/verdict/verdict.h"
#include "tools/dtrun/report/chart.h"
#include "tools/dtrun/report/events.h"
#include "tools/dtrun/report/style.h"

namespace dtrun::report {
namespace {

using cli::TextAt;

constexpr std::size_t kMostRows = 512;  // of a table of ranks; the pictures have all

std::string LinesEscaped(std::string_view text) {
  std::string out;
  for (const std::string_view line : LinesOf(text)) out += Escaped(line) + '\n';
  return out;
}

// The unit of a time axis, and the seconds in it.
struct TimeUnit {
  const char* name;
  double seconds;
};
TimeUnit UnitFor(double seconds) {
  if (seconds > 3 * 3600) return {"h", 3600};
  if (seconds > 300) return {"min", 60};
  return {"s", 1};
}

class Writer {
 public:
  explicit Writer(const RunRecords& records)
      : records_(records),
        unit_(UnitFor(records.seconds)),
        lives_(LivesOf(records.entries, records.seconds)) {}

  std::string Write() {
    Head();
    Verdict();
    Metrics();
    Ranks();
    Restarts();
    Events();
    Choices();
    Config();
    out_ += fmt::format("</main><footer>Written by dtrun {} from {}</footer></body></html>\n", DTRUN_VERSION,
                        Escaped(records_.folder.string()));
    return std::move(out_);
  }

 private:
  void Head() {
    const std::string job = Escaped(records_.story.job);
    out_ += fmt::format(kHeadMarkup, job, kStyle, StateClass(), Escaped(records_.story.state));
    Fact("began", records_.began);
    if (records_.seconds > 0) {
      Fact("duration", verdict::FormatElapsed(
                           std::chrono::nanoseconds(static_cast<std::int64_t>(records_.seconds * 1e9))));
    }
    Fact("ranks", TextAt(records_.plan, "/world_size"));
    Fact("hosts", Hosts());
    Fact("command", Command());
    Fact("launcher", TextAt(records_.plan, "/launcher"));
    Fact("run folder", records_.folder.string());
    if (!records_.story.note.empty()) Fact("record", records_.story.note);
    for (const std::string& unread : records_.story.unread) Fact("not read", unread);
    out_ += "</dl></header><main>";
  }

  const char* StateClass() const {
    const std::string& state = records_.story.state;
    return state.starts_with("running") ? "runs" : state.starts_with("succeeded") ? "good" : "bad";
  }

  void Fact(const char* name, const std::string& value) {
    if (!value.empty()) out_ += fmt::format("<dt>{}</dt><dd>{}</dd>", name, Escaped(value));
  }

  std::string Hosts() const {
    std::string hosts;
    const auto list = records_.plan.find("hosts");
    if (list == records_.plan.end() || !list->is_array()) return hosts;
    for (const Json& host : *list) {
      const std::string name = host.is_object() ? TextAt(host, "/name") : "";
      if (!name.empty()) hosts += (hosts.empty() ? "" : ", ") + name;
    }
    return hosts;
  }

  std::string Command() const {
    std::string command;
    for (std::size_t i = 0;; ++i) {
      const std::string path = fmt::format("/processes/0/argv/{}", i);
      if (!records_.plan.contains(Json::json_pointer(path))) return command;
      command += (i == 0 ? "" : " ") + TextAt(records_.plan, path.c_str());
    }
  }

  void Verdict() {
    const std::string& straggler = records_.story.straggler;
    const std::string text = records_.story.verdict + (straggler.empty() ? "" : straggler + "\n");
    if (!text.empty()) out_ += "<h2>Verdict</h2><pre>" + LinesEscaped(text) + "</pre>";
    if (!records_.story.live) return;
    out_ += "<h2>Now</h2><pre>" + LinesEscaped(cli::ToText(*records_.story.live)) + "</pre>";
  }

  // ---- metrics

  Chart ChartOf(const std::string& title, const std::map<int, std::vector<Sample>>& ranks,
                bool by_step) const {
    Chart chart{title, by_step ? "step" : unit_.name, {}};
    for (const auto& [rank, samples] : ranks) {
      Line line{rank < 0 ? "job" : fmt::format("rank {}", rank), {}};
      for (const Sample& sample : samples) {
        if (!by_step) line.points.emplace_back(sample.time / unit_.seconds, sample.value);
        if (by_step && sample.step) line.points.emplace_back(*sample.step, sample.value);
      }
      chart.lines.push_back(std::move(line));
    }
    if (!by_step) {
      for (const double restart : lives_.restarts) chart.marks.push_back(restart / unit_.seconds);
    }
    return chart;
  }

  void Metrics() {
    std::string times, steps;
    for (const auto& [name, ranks] : records_.metrics) {
      if (name.starts_with("dtrun_")) continue;
      times += Figure(ChartOf(name, ranks, false));
      const bool has_steps = std::ranges::any_of(ranks, [](const auto& of) {
        return std::ranges::any_of(of.second, [](const Sample& sample) { return sample.step.has_value(); });
      });
      steps += Figure(ChartOf(name, ranks, has_steps));
      any_steps_ = any_steps_ || has_steps;
    }
    if (times.empty()) return;
    out_ += "<h2>Metrics</h2>";
    if (!any_steps_) {
      out_ += "<div class=\"charts\">" + times + "</div>";
      return;
    }
    out_ += kChoiceMarkup + times + "</div><div class=\"charts steps\">" + steps + "</div></section>";
  }

  // ---- ranks

  // Cores in use between two samples of processor time, which begins anew after a restart.
  static std::map<int, std::vector<Sample>> Cores(const std::map<int, std::vector<Sample>>& totals) {
    std::map<int, std::vector<Sample>> cores;
    for (const auto& [rank, samples] : totals) {
      for (std::size_t i = 1; i < samples.size(); ++i) {
        const double seconds = samples[i].time - samples[i - 1].time,
                     used = samples[i].value - samples[i - 1].value;
        if (seconds > 0 && used >= 0) cores[rank].push_back({samples[i].time, used / seconds, {}});
      }
    }
    return cores;
  }
  static std::map<int, std::vector<Sample>> MiB(std::map<int, std::vector<Sample>> ranks) {
    for (auto& [rank, samples] : ranks) {
      for (Sample& sample : samples) sample.value /= 1 << 20;
    }
    return ranks;
  }

  const std::map<int, std::vector<Sample>>& Of(const char* name) const {
    static const std::map<int, std::vector<Sample>> none;
    const auto found = records_.metrics.find(name);
    return found == records_.metrics.end() ? none : found->second;
  }

  void Ranks() {
    if (lives_.ranks.empty()) return;
    out_ += "<h2>Ranks</h2><figure class=\"bars\"><figcaption>Ranks by time</figcaption>";
    std::vector<std::string> rows;
    for (const int rank : lives_.ranks) rows.push_back(std::to_string(rank));
    std::vector<Bar> bars;
    for (const Life& life : lives_.lives) {
      const auto row = std::ranges::lower_bound(lives_.ranks, life.rank) - lives_.ranks.begin();
      bars.push_back({static_cast<int>(row), life.from / unit_.seconds, life.to / unit_.seconds, life.kind,
                      fmt::format("rank {}, generation {}: {}", life.rank, life.generation, life.how)});
    }
    out_ += Bars(rows, bars, unit_.name) + kKeyMarkup;
    const std::string charts =
        Figure(ChartOf("processor, cores in use", Cores(Of(metrics::kProcessor)), false)) +
        Figure(ChartOf("memory, MiB", MiB(Of(metrics::kMemory)), false));
    if (!charts.empty()) out_ += "<div class=\"charts\" style=\"margin-top:12px\">" + charts + "</div>";
    RankTable();
  }

  void RankTable() {
    std::vector<const Life*> last;  // of the last generation
    for (const Life& life : lives_.lives) {
      if (life.generation == lives_.generation) last.push_back(&life);
    }
    const bool many = last.size() > 32;
    out_ += fmt::format(kRankTableMarkup, many ? "<details><summary>Table of ranks</summary>" : "");
    for (std::size_t i = 0; i < std::min(last.size(), kMostRows); ++i) {
      const Life& life = *last[i];
      out_ += fmt::format(
          "<tr><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{:.1f} s</td><td "
          "class=\"n\">{}</td>"
          "<td class=\"n\">{}</td><td class=\"w\">{}</td></tr>",
          life.rank, Escaped(life.host), life.pid, life.to - life.from, Last(metrics::kProcessor, life.rank),
          Most(metrics::kMemory, life.rank), Escaped(life.how));
    }
    out_ += "</table></div>";
    if (last.size() > kMostRows) out_ += fmt::format("<p>{} more ranks</p>", last.size() - kMostRows);
    if (many) out_ += "</details>";
  }

  std::string Last(const char* name, int rank) const {
    const auto found = Of(name).find(rank);
    return found == Of(name).end() ? "" : fmt::format("{:.1f} s", found->second.back().value);
  }
  std::string Most(const char* name, int rank) const {
    const auto found = Of(name).find(rank);
    if (found == Of(name).end()) return "";
    const double most = std::ranges::max_element(found->second, {}, &Sample::value)->value;
    return fmt::format("{:.0f} MiB", most / (1 << 20));
  }

  // ---- the job

  void Restarts() {
    const auto generations = records_.verdict.find("generations");
    if (generations == records_.verdict.end() || !generations->is_array() || generations->size() < 2) return;
    out_ += kRestartsMarkup;
    for (const Json& one : *generations) {
      if (!one.is_object()) continue;
      out_ += "<tr>";
      for (const char* key : {"/generation", "/result", "/exit_class", "/exit_code", "/first_failed_rank",
                              "/duration_seconds"}) {
        const std::string_view name(key + 1);
        const bool number = name != "result" && name != "exit_class";
        std::string text = TextAt(one, key);
        if (name == "duration_seconds" && one.contains(name) && one[std::string(name)].is_number())
          text = fmt::format("{:.1f}", one[std::string(name)].get<double>());
        out_ += fmt::format("<td{}>{}</td>", number ? " class=\"n\"" : "", Escaped(text));
      }
      out_ += "</tr>";
    }
    out_ += "</table></div>";
  }

  void Events() {
    const std::vector<EventLine> events = EventLines(records_.entries);
    if (events.empty()) return;
    out_ +=
        "<h2>Events</h2><div class=\"wide\"><table><tr><th "
        "class=\"n\">seconds</th><th>from</th><th>what</th></tr>";
    for (const EventLine& event : events) {
      out_ += fmt::format("<tr><td class=\"n\">{}</td><td>{}</td><td class=\"w\">{}</td></tr>",
                          event.from.empty() ? "" : fmt::format("{:.2f}", event.seconds), Escaped(event.from),
                          Escaped(event.what));
    }
    out_ += "</table></div>";
  }

  void Choices() {
    if (records_.story.choices.empty()) return;
    out_ += "<h2>What the job used, and why</h2><div class=\"wide\"><table>";
    for (const cli::Choice& choice : records_.story.choices) {
      out_ += fmt::format(
          "<tr><th>{}</th><td class=\"w\">{}</td><td class=\"w\">{}</td></tr>", Escaped(choice.topic),
          Escaped(choice.value.empty() ? "not recorded" : choice.value), Escaped(choice.reason));
    }
    out_ += "</table></div>";
  }

  void Config() {
    std::string given, defaults;
    for (const auto& [key, entry] : records_.config.items()) {
      if (!entry.is_object()) continue;
      const std::string origin = TextAt(entry, "/origin");
      std::string& to = origin == "default" ? defaults : given;
      to += fmt::format("<tr><td>{}</td><td class=\"w\">{}</td><td class=\"w\">{}</td></tr>", Escaped(key),
                        Escaped(TextAt(entry, "/value")), Escaped(origin));
    }
    if (given.empty() && defaults.empty()) return;
    constexpr char kHead[] = "<div class=\"wide\"><table><tr><th>option</th><th>value</th><th>from</th></tr>";
    out_ += fmt::format("<h2>Config</h2>{}{}</table></div>", kHead, given);
    if (!defaults.empty())
      out_ +=
          fmt::format("<details><summary>Defaults</summary>{}{}</table></div></details>", kHead, defaults);
  }

  const RunRecords& records_;
  const TimeUnit unit_;
  const Lives lives_;
  bool any_steps_ = false;
  std::string out_;
};

}  // namespace

std::string Page(const RunRecords& records) { return Writer(records).Write(); }

}  // namespace dtrun::report
