#include "core/preflight/network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/json.h"
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

}  // namespace dtrun::preflight
