#include "core/verdict/missed.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

namespace dtrun::verdict {
namespace {

bool WaitedUntilALimit(std::string_view what) {
  constexpr std::string_view kWords[] = {"did not end within", "did not finish within", "timed out",
                                         " gave up: "};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return what.find(word) != what.npos; });
}

// Converts the "2" of "rank 2" in the communicator to a rank of the world.
int InWorld(std::string_view number, const std::vector<int>& members) {
  int rank = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
  if (error != std::errc() || end != number.data() + number.size() || rank < 0) return -1;
  if (members.empty()) return rank;
  return static_cast<std::size_t>(rank) < members.size() ? members[static_cast<std::size_t>(rank)] : -1;
}

// "recv from rank 1 on 'world' (...)...", "allreduce #4 on 'world' (...)..."
std::optional<MissedCall> CallIn(const PeerReport& report) {
  constexpr std::string_view kOn = " on '";
  const std::string_view what = report.what;
  const std::size_t on = what.find(kOn);
  if (on == what.npos || !WaitedUntilALimit(what)) return std::nullopt;
  const std::string_view call = what.substr(0, on);
  std::string_view name = what.substr(on + kOn.size());
  name = name.substr(0, name.find('\''));
  for (const std::string_view message : {"recv from", "send to"}) {
    if (!call.starts_with(message)) continue;
    const std::size_t space = call.rfind(' ');
    const int peer = InWorld(call.substr(space + 1), report.members);
    if (peer < 0) return std::nullopt;  // from any rank
    return MissedCall{peer, std::string(message), std::string(name)};
  }
  const std::size_t space = call.find(' ');
  const bool collective =
      space != call.npos && call.substr(space).starts_with(" #") && call.find(' ', space + 1) == call.npos;
  if (!collective) return std::nullopt;
  return MissedCall{report.peer, "", std::string(name)};
}

}  // namespace

std::optional<MissedCall> MissedCallOf(const RankFacts& rank) {
  for (const PeerReport& report : rank.reports) {
    std::optional<MissedCall> call = rank.IsOfAnother(report) ? CallIn(report) : std::nullopt;
    if (call) return call;
  }
  return std::nullopt;
}

std::set<int> MembersMissed(const Facts& facts, std::size_t first) {
  std::set<int> members;
  std::set<std::size_t> seen;
  for (std::vector<std::size_t> next = {first}; !next.empty();) {
    const RankFacts& rank = facts.ranks[next.back()];
    const bool fresh = seen.insert(next.back()).second;
    next.pop_back();
    for (const PeerReport& report : rank.reports) {
      if (!fresh || !rank.IsOfAnother(report)) continue;
      if (report.members.empty()) return {};
      members.insert(report.members.begin(), report.members.end());
      for (std::size_t i = 0; i < facts.ranks.size(); ++i) {
        if (IsAmong({report.members.begin(), report.members.end()}, facts.ranks[i])) next.push_back(i);
      }
    }
  }
  return members;
}

bool IsAmong(const std::set<int>& members, const RankFacts& process) {
  const auto at = members.lower_bound(process.rank);
  return members.empty() || (at != members.end() && *at < process.rank + process.count);
}

}  // namespace dtrun::verdict
