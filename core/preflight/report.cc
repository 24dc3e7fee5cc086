#include "core/preflight/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "core/base/json.h"
#include "core/base/printable.h"
#include "core/base/text.h"

namespace dtrun::preflight {
namespace {

// Answers take time to arrive and to be scheduled: smaller differences prove nothing about a clock.
constexpr double kSkewSeconds = 2;

// Indentation of further lines, up to the third column.
const std::string kColumn(24, ' ');

// Host names and texts of libraries may contain terminal control characters.
std::string PrintableLines(std::string_view text) {
  std::string out;
  for (const std::string_view line : LinesOf(text)) out += (out.empty() ? "" : "\n") + Printable(line);
  return out;
}

void Append(const std::vector<Check>& checks, std::string* out) {
  for (const Check& check : checks) {
    fmt::format_to(std::back_inserter(*out), "  {:<8} {:<12} {}\n", LevelName(check.level), check.topic,
                   Indented(PrintableLines(check.what), kColumn));
    if (!check.fix.empty()) fmt::format_to(std::back_inserter(*out), "  {:<21} next: {}\n", "",
                                            PrintableLines(check.fix));
  }
}

Json ToJson(const std::vector<Check>& checks) {
  Json out = Json::array();
  for (const Check& check : checks) {
    out.push_back({{"level", LevelName(check.level)},
                   {"topic", check.topic},
                   {"what", check.what},
                   {"fix", check.fix},
                   {"cure", check.fix}});  // its old name, removed after 0.2
  }
  return out;
}

template <class Each>
void ForEach(const DoctorReport& report, Each each) {
  for (const CheckedHost& host : report.hosts) std::ranges::for_each(host.checks, each);
  std::ranges::for_each(report.between, each);
}

std::ptrdiff_t Count(const DoctorReport& report, Level level) {
  std::ptrdiff_t count = 0;
  ForEach(report, [&](const Check& check) { count += check.level == level ? 1 : 0; });
  return count;
}

}  // namespace

std::vector<Check> Compare(const std::vector<std::pair<std::string, Answer>>& by_host, double sent_seconds) {
  std::vector<Check> checks;
  if (by_host.size() < 2) return checks;
  double worst = 0;
  std::string late;
  for (const auto& [host, answer] : by_host) {
    const double skew = answer.clock_seconds - sent_seconds;
    if (std::abs(skew) <= std::abs(worst)) continue;
    worst = skew;
    late = host;
  }
  if (std::abs(worst) > kSkewSeconds) {
    checks.push_back(
        {"clocks", Level::kWarning,
         fmt::format("the clock of {} is {:.1f} s {} the root's", late, std::abs(worst),
                     worst > 0 ? "ahead of" : "behind"),
         "run chrony or ntpd on all hosts: logs cannot be compared, and certificates may look expired"});
  } else {
    checks.push_back({"clocks", Level::kOk, fmt::format("within {:.0f} s of the root's", kSkewSeconds)});
  }
  const auto& backends = by_host.front().second.backends;
  for (std::size_t i = 0; i < backends.size(); ++i) {
    std::map<std::string, std::string> hosts_of;  // library -> hosts
    for (const auto& [host, answer] : by_host) {
      const std::string& library =
          answer.backends[i].why_not.empty() ? answer.backends[i].library : "not usable";
      std::string& hosts = hosts_of[library];
      hosts += (hosts.empty() ? "" : " ") + host;
    }
    if (hosts_of.size() < 2) continue;
    std::string what;
    for (const auto& [library, hosts] : hosts_of)
      what += fmt::format("{}{} on {}", what.empty() ? "" : "; ", library, hosts);
    checks.push_back(
        {"backend " + backends[i].name, Level::kWarning, "hosts differ: " + what,
         "install the same version everywhere: libraries of two versions may not understand each other"});
  }
  return checks;
}

Level Worst(const DoctorReport& report) {
  Level worst = Level::kOk;
  ForEach(report, [&](const Check& check) { worst = std::max(worst, check.level); });
  return worst;
}

std::string ToText(const DoctorReport& report) {
  std::string out;
  for (const CheckedHost& host : report.hosts) {
    out += Printable(host.name) + "\n";
    Append(host.checks, &out);
  }
  if (!report.between.empty()) {
    out += "between hosts\n";
    Append(report.between, &out);
  }
  const auto problems = Count(report, Level::kProblem), warnings = Count(report, Level::kWarning);
  return out + fmt::format("{} problem{}, {} warning{}\n", problems, problems == 1 ? "" : "s", warnings,
                           warnings == 1 ? "" : "s");
}

Json ToJson(const DoctorReport& report) {
  Json hosts = Json::array();
  for (const CheckedHost& host : report.hosts)
    hosts.push_back({{"host", host.name}, {"checks", ToJson(host.checks)}});
  Json out{{"worst", LevelName(Worst(report))}, {"hosts", hosts}, {"between", ToJson(report.between)}};
  if (report.network) out["links"] = LinksToJson(report.network->evidence);
  return out;
}

}  // namespace dtrun::preflight
