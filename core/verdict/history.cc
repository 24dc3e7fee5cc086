#include "core/verdict/history.h"

#include <utility>

#include "core/verdict/cause.h"
#include "core/verdict/verdict.h"

namespace dtrun::verdict {
namespace {

const char* ResultName(const Facts& facts) {
  if (facts.guard_died) return "guard killed";
  if (!facts.regroup.empty()) return "regrouped";
  switch (FindCause(facts).kind) {
    case Cause::Kind::kRank:
    case Cause::Kind::kIsolatedRanks:
    case Cause::Kind::kStalled:
    case Cause::Kind::kMpiServer:
    case Cause::Kind::kTimeLimit:
    case Cause::Kind::kHost: return "failed";
    case Cause::Kind::kInterrupt: return "interrupted";
    default: return "succeeded";
  }
}

}  // namespace

GenerationSummary Summarise(const Facts& facts) {
  const Cause cause = FindCause(facts);
  GenerationSummary summary;
  summary.generation = facts.generation;
  summary.result = ResultName(facts);
  if (cause.kind != Cause::Kind::kNone) summary.exit_class = ClassName(cause.exit_class);
  summary.exit_code = ExitCode(facts);
  summary.duration = facts.duration;
  if (cause.kind == Cause::Kind::kRank) summary.first_failed_rank = facts.ranks[cause.index].blamed();
  if (cause.kind == Cause::Kind::kHost) summary.lost_host = facts.losses[cause.index].host;
  summary.interrupt = facts.interrupt;
  return summary;
}

History::History(std::initializer_list<Facts> generations) {
  for (const Facts& facts : generations) Add(facts);
}

void History::Add(Facts facts) {
  const bool again = !empty() && last_.generation == facts.generation;
  if (again) (latest_.empty() ? first_ : latest_).pop_back();
  (latest_.empty() && first_.size() < kFirst ? first_ : latest_).push_back(Summarise(facts));
  if (latest_.size() > kLatest) {
    latest_.pop_front();
    ++omitted_;
  }
  last_ = std::move(facts);
}

}  // namespace dtrun::verdict
