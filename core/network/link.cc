#include "core/network/link.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace dtrun::network {
namespace {

constexpr std::size_t kMostInMatrix = 12;

// The hosts to show in a matrix.
std::vector<int> Shown(std::size_t count, const std::vector<Link>& links) {
  std::set<int> hosts;
  for (const Link& link : links) {
    if (count <= kMostInMatrix || !link.failed.empty()) hosts.insert({link.from, link.to});
  }
  std::vector<int> shown(hosts.begin(), hosts.end());
  if (shown.size() > kMostInMatrix) shown.resize(kMostInMatrix);
  return shown;
}

}  // namespace

std::vector<Link> LinksOf(const Evidence& evidence) {
  std::vector<Link> links;
  for (int host = 0; host < static_cast<int>(evidence.hosts().size()); ++host) {
    for (const int peer : evidence.PeersOf(host)) {
      Link link{host, peer, {}, {}};
      for (const Attempt& attempt : evidence.AttemptsOf(host)) {
        if (attempt.peer != peer) continue;
        const Candidate& from = evidence.CandidateOf(host, attempt.from);
        if (!attempt.connected()) {
          const Candidate& to = evidence.CandidateOf(peer, attempt.to);
          link.failed.push_back(fmt::format("{} to {}: {}", from.Text(), to.Text(), attempt.why));
          continue;
        }
        const std::string& by = attempt.leaves_by.empty() ? from.interface : attempt.leaves_by;
        if (std::ranges::find(link.interfaces, by) == link.interfaces.end()) link.interfaces.push_back(by);
      }
      std::ranges::sort(link.interfaces);
      links.push_back(std::move(link));
    }
  }
  return links;
}

std::string Matrix(const Evidence& evidence, const std::vector<Link>& links) {
  const std::vector<int> shown = Shown(evidence.hosts().size(), links);
  std::map<std::pair<int, int>, std::string> cells;
  for (const Link& link : links) {
    cells[{link.from, link.to}] =
        link.interfaces.empty() ? "none" : fmt::format("{}", fmt::join(link.interfaces, ","));
  }
  std::vector<std::vector<std::string>> rows{{"from, to"}};
  for (const int to : shown) rows[0].push_back(evidence.NameOf(to));
  for (const int from : shown) {
    rows.push_back({evidence.NameOf(from)});
    for (const int to : shown) {
      const auto cell = cells.find({from, to});
      rows.back().push_back(cell == cells.end() ? "." : cell->second);
    }
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::vector<std::string> Broken(const Evidence& evidence) {
  std::vector<std::string> broken;
  for (int host = 0; host < static_cast<int>(evidence.hosts().size()); ++host) {
    const auto& attempts = evidence.AttemptsOf(host);
    const auto inside = [&](const Attempt& one) {
      return OneNetwork(evidence.CandidateOf(host, one.from), evidence.CandidateOf(one.peer, one.to));
    };
    for (const Attempt& attempt : attempts) {
      if (attempt.connected() || !inside(attempt)) continue;
      // Another address pair of the same interfaces is connected, for example if all hosts have the same
      // virtual address.
      const auto pair_of = [&](const Attempt& one) {
        const Candidate& from = evidence.CandidateOf(host, one.from);
        return std::tuple(from.interface, from.address.ip.is_v6(), one.peer,
                          evidence.CandidateOf(one.peer, one.to).interface);
      };
      if (std::ranges::any_of(attempts, [&](const Attempt& other) {
            return other.connected() && pair_of(other) == pair_of(attempt);
          }))
        continue;
      const bool reaches_others = std::ranges::any_of(attempts, [&](const Attempt& other) {
        return other.from == attempt.from && other.connected() && inside(other);
      });
      if (!reaches_others && !attempt.small_only()) continue;
      broken.push_back(fmt::format("{} of {} does not reach {}: {}",
                                   evidence.CandidateOf(host, attempt.from).Text(), evidence.NameOf(host),
                                   evidence.NameOf(attempt.peer), attempt.why));
    }
  }
  return broken;
}

}  // namespace dtrun::network
