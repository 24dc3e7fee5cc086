#include "tools/dtrun/report/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/metrics/open_metrics.h"
#include "core/verdict/verdict.h"
#include "tools/dtrun/report/chart.h"
#include "tools/dtrun/report/events.h"

namespace dtrun::report {
namespace {

using cli::TextAt;

// For light and dark, from 320 pixels of width on.
constexpr char kStyle[] = R"css(
:root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1c1c1a;--soft:#62625c;--line:#e3e2dd;--good:#1a7f4b;--bad:#c4302b;
--stop:#a3a29b;--runs:#2a78d6;--c0:#2a78d6;--c1:#d1521c;--c2:#178a60;--c3:#a87400;--c4:#4a3aa7;--c5:#c93b6e;--c6:#00747a;--c7:#6d6d66}
@media(prefers-color-scheme:dark){:root{--bg:#161615;--card:#1f1f1d;--ink:#ececea;--soft:#a3a29b;--line:#373734;--good:#45b47d;
--bad:#f0716b;--stop:#77766f;--runs:#5598e7;--c0:#5598e7;--c1:#e8783f;--c2:#3bb58a;--c3:#d29f22;--c4:#9c90ee;--c5:#ea6f9a;
--c6:#36b0b6;--c7:#a3a29b}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main,header{max-width:1320px;margin:0 auto;padding:0 16px}header{padding-top:24px}h1{font-size:24px;margin:0;overflow-wrap:anywhere}
h2{font-size:17px;margin:32px 0 8px}p{margin:4px 0}.state{font-weight:600}.state.good{color:var(--good)}.state.bad{color:var(--bad)}
.state.runs{color:var(--runs)}dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:2px 16px;margin:12px 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}pre{margin:0;padding:12px;background:var(--card);border:1px solid var(--line);
border-radius:6px;font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
.wide{overflow-x:auto;margin-top:8px}table{border-collapse:collapse;font-size:14px}.bars svg{max-width:640px}th,td{padding:4px 16px 4px 0;text-align:left;
vertical-align:top;border-bottom:1px solid var(--line)}th{color:var(--soft);font-weight:500}td.n,th.n{text-align:right;
font-variant-numeric:tabular-nums;white-space:nowrap}td.w{overflow-wrap:anywhere;min-width:120px}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,360px),1fr));gap:12px}
figure{margin:0;padding:10px 12px;background:var(--card);border:1px solid var(--line);border-radius:6px;min-width:0}
figcaption{font-weight:600;font-size:14px;overflow-wrap:anywhere}svg{display:block;width:100%;height:auto}
svg .t{font:11px system-ui,sans-serif;fill:var(--soft)}.grid{stroke:var(--line)}.axis{stroke:var(--soft)}
.mark{stroke:var(--soft);stroke-dasharray:3 3}.l{fill:none;stroke-width:1.6;stroke-linejoin:round}
.band{fill:var(--c0);opacity:.22}rect.good{fill:var(--good)}rect.bad{fill:var(--bad)}rect.stopped{fill:var(--stop)}rect.runs{fill:var(--runs)}
.legend{font-size:12px;color:var(--soft)}.legend span{margin-right:10px;white-space:nowrap;display:inline-block}.legend b{color:var(--ink);font-weight:500}
.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:4px}
.l0{stroke:var(--c0)}.l1{stroke:var(--c1)}.l2{stroke:var(--c2)}.l3{stroke:var(--c3)}.l4{stroke:var(--c4)}.l5{stroke:var(--c5)}.l6{stroke:var(--c6)}.l7{stroke:var(--c7)}
.d0,.s0{fill:var(--c0);background:var(--c0)}.d1,.s1{fill:var(--c1);background:var(--c1)}.d2,.s2{fill:var(--c2);background:var(--c2)}
.d3,.s3{fill:var(--c3);background:var(--c3)}.d4,.s4{fill:var(--c4);background:var(--c4)}.d5,.s5{fill:var(--c5);background:var(--c5)}
.d6,.s6{fill:var(--c6);background:var(--c6)}.d7,.s7{fill:var(--c7);background:var(--c7)}
.key i{display:inline-block;width:10px;height:10px;border-radius:2px;margin:0 4px 0 10px}.key{font-size:12px;color:var(--soft)}
.choose{display:inline-block;margin:0 0 8px}.choose label{margin-right:12px}
#by-time:checked~.steps,#by-step:checked~.times{display:none}
summary{cursor:pointer;color:var(--soft);margin:8px 0}footer{max-width:1320px;margin:32px auto;padding:0 16px;color:var(--soft);font-size:13px}
@media(max-width:600px){dl{grid-template-columns:minmax(0,1fr)}dd{margin-bottom:6px}th,td{padding-right:8px}}
)css";

// {0}: the job, {1}: the styles, {2}: a class, {3}: the state.
constexpr char kHeadMarkup[] = R"html(<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{0} - dtrun report</title><style>{1}</style></head><body><header><h1>{0}</h1>
<p class="state {2}">{3}</p><dl>)html";

constexpr char kChoiceMarkup[] =
    R"html(<section><input type="radio" name="by" id="by-time" checked><label for="by-time">over time</label>
<input type="radio" name="by" id="by-step"><label for="by-step">over steps</label><div class="charts times">)html";

constexpr char kKeyMarkup[] =
    R"html(<p class="key"><i style="background:var(--good)"></i>succeeded<i style="background:var(--bad)"></i>failed
<i style="background:var(--stop)"></i>stopped by dtrun<i style="background:var(--runs)"></i>runs</p></figure>)html";

// {}: what opens a fold, if there is one.
constexpr char kRankTableMarkup[] =
    R"html({}<div class="wide"><table><tr><th class="n">rank</th><th>host</th><th class="n">pid</th>
<th class="n">time</th><th class="n">processor</th><th class="n">most memory</th><th>end</th></tr>)html";

constexpr char kRestartsMarkup[] =
    R"html(<h2>Restarts</h2><div class="wide"><table><tr><th class="n">generation</th><th>result</th><th>class</th>
<th class="n">exit code</th><th class="n">failed first</th><th class="n">seconds</th></tr>)html";

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

  Chart ChartOf(const std::string& title, const SamplesOfRanks& ranks, bool by_step) const {
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
  static SamplesOfRanks Cores(const SamplesOfRanks& totals) {
    SamplesOfRanks cores;
    for (const auto& [rank, samples] : totals) {
      for (std::size_t i = 1; i < samples.size(); ++i) {
        const double seconds = samples[i].time - samples[i - 1].time,
                     used = samples[i].value - samples[i - 1].value;
        if (seconds > 0 && used >= 0) cores[rank].push_back({samples[i].time, used / seconds, {}});
      }
    }
    return cores;
  }
  static SamplesOfRanks MiB(SamplesOfRanks ranks) {
    for (auto& [rank, samples] : ranks) {
      for (Sample& sample : samples) sample.value /= 1 << 20;
    }
    return ranks;
  }

  const SamplesOfRanks& Of(const char* name) const {
    static const SamplesOfRanks none;
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
