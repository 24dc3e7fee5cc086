#include "core/preflight/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/network/link.h"
#include "core/network/weakness.h"

namespace dtrun::preflight {
namespace {

constexpr std::size_t kMostBroken = 8;

Check LinksCheck(const network::Evidence& evidence) {
  const std::vector<network::Link> links = network::LinksOf(evidence);
  const auto whole =
      std::ranges::count_if(links, [](const network::Link& one) { return one.failed.empty(); });
  if (whole == std::ssize(links)) {
    return {"links", Level::kOk,
            fmt::format("all {} directions between hosts work on every tested interface", links.size())};
  }
  Check check{"links", Level::kOk,
              "by which interfaces hosts reach each other\n" + network::Matrix(evidence, links)};
  check.what.pop_back();
  std::vector<std::string> broken = network::Broken(evidence);
  if (broken.empty()) return check;
  check.level = Level::kWarning;
  for (std::size_t i = 0; i < broken.size() && i < kMostBroken; ++i) check.what += "\n" + broken[i];
  if (broken.size() > kMostBroken) check.what += fmt::format("\nand {} more", broken.size() - kMostBroken);
  check.fix =
      "check its cable, firewall and MTU; or exclude it with \"^\" in network.interface, for programs that "
      "choose an interface themselves";
  return check;
}

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
    if (!check.fix.empty())
      fmt::format_to(std::back_inserter(*out), "  {:<21} next: {}\n", "", PrintableLines(check.fix));
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

std::vector<Check> CheckNetwork(const NetworkFinding& finding) {
  std::vector<Check> checks;
  if (finding.decision) {
    checks.push_back({"network", Level::kOk, network::Summary(*finding.decision)});
    const std::string others = network::OthersText(*finding.decision);
    if (!others.empty()) checks.push_back({"network", Level::kOk, "not used: " + others});
    for (network::Weakness& one : network::WeaknessesOf(*finding.decision, finding.decision->chosen))
      checks.push_back({"network", Level::kWarning, std::move(one.what), std::move(one.fix)});
    for (const network::Assignment& one : finding.decision->measured) {
      if (one.candidates == finding.decision->chosen.candidates || one.loss == 0) continue;
      const network::Weakness loss = network::WeaknessesOf(*finding.decision, one).front();
      checks.push_back({"network", Level::kWarning, "not used, " + loss.what, loss.fix});
    }
  } else {
    checks.push_back({"network", Level::kProblem, finding.decision.error().text,
                      "a job would end the same way, before any rank starts; fix this first"});
  }
  for (const std::string& duplicate : finding.evidence.Duplicates())
    checks.push_back({"network", Level::kWarning, duplicate, "give every host an address of its own"});
  if (!finding.evidence.hosts().empty()) checks.push_back(LinksCheck(finding.evidence));
  return checks;
}

Json LinksToJson(const network::Evidence& evidence) {
  Json out = Json::array();
  const auto name = [&](int host) { return evidence.hosts()[static_cast<std::size_t>(host)].name; };
  for (const network::Link& link : network::LinksOf(evidence)) {
    out.push_back({{"from", name(link.from)},
                   {"to", name(link.to)},
                   {"interfaces", link.interfaces},
                   {"failed", link.failed}});
  }
  return out;
}

std::vector<Check> Compare(const AnswersByHost& by_host, double sent_seconds) {
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
