#include "core/verdict/aborter.h"

#include <algorithm>
#include <string_view>

#include "core/base/error_id.h"

namespace dtrun::verdict {
namespace {

std::string_view ArgOf(const PeerReport& report, const char* name) {
  const auto found = report.args.find(name);
  return found == report.args.end() ? std::string_view() : found->second;
}

// Those that failed by it have the operation for "call".
bool IsOfAborter(const PeerReport& report) {
  return report.id == ErrorId::kAborted && ArgOf(report, "call") == "abort" &&
         report.args.contains("communicator") && report.args.contains("reason");
}

}  // namespace

const PeerReport* AbortOf(const RankFacts& rank) {
  const auto found = std::ranges::find_if(rank.reports, IsOfAborter);
  return found == rank.reports.end() ? nullptr : &*found;
}

bool FailedByAbort(const RankFacts& rank) {
  return std::ranges::any_of(rank.reports, [](const PeerReport& report) {
    return report.id == ErrorId::kAborted && !IsOfAborter(report);
  });
}

std::optional<std::size_t> AborterOf(const Facts& facts, const RankFacts& rank) {
  for (std::size_t i = 0; i < facts.ranks.size(); ++i) {
    const RankFacts& other = facts.ranks[i];
    const PeerReport* const abort = &other == &rank ? nullptr : AbortOf(other);
    if (abort == nullptr || other.FailedByItself()) continue;
    const auto by_it = [&](const PeerReport& report) {
      const bool alike =
          report.id == ErrorId::kAborted && ArgOf(report, "communicator") == ArgOf(*abort, "communicator");
      return alike || (rank.IsOfAnother(report) && report.peer >= other.rank &&
                       report.peer < other.rank + other.count);
    };
    if (std::ranges::any_of(rank.reports, by_it)) return i;
  }
  return std::nullopt;
}

}  // namespace dtrun::verdict
