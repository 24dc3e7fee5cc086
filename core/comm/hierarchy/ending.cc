#include "core/comm/hierarchy/ending.h"

#include <fmt/format.h>

namespace dtrun::comm {

std::optional<sdk::Membership::Published> Ending::FirstOfOthers(const sdk::Failure& mine) const {
  try {
    members_.PublishFailure(mine);
    std::optional<sdk::Membership::Published> first = members_.FirstPublished();
    if (first && first->rank != members_.rank()) return first;
  } catch (const sdk::Failure&) {  // the store is gone with the job: only this rank's view is left
  }
  return std::nullopt;
}

sdk::Failure Ending::FirstOfAll(const sdk::Failure& mine) const {
  const auto first = FirstOfOthers(mine);
  if (!first) return mine;
  const sdk::Failure& theirs = first->failure;
  if (theirs.code() == DTRUN_TIMEOUT) {
    return sdk::Failure(DTRUN_REMOTE_FAILURE, fmt::format("rank {} gave up: {}", first->rank, theirs.what()),
                        first->rank);
  }
  // A layer has told its peers before this rank could publish: they follow what has failed here.
  if (theirs.peer() == members_.rank()) return mine;
  return sdk::Failure(theirs.code(), theirs.what(), theirs.peer());
}

void Ending::End(const sdk::Failure& failure) {
  if (failure_) return;
  const sdk::Failure first = FirstOfAll(failure);
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.Set(first)) return;
  }
  ended_.notify_all();
  Report(first);
  if (abort_) abort_(first.what());
}

void Ending::Fail(const sdk::Failure& failure) {
  End(failure);
  throw sdk::Failure(*failure_);
}

void Ending::FailToJoin(const sdk::Failure& failure) {
  const auto first = FirstOfOthers(failure);
  if (!first || first->failure.peer() < 0 || first->failure.peer() == members_.rank())
    throw sdk::Failure(failure);
  throw sdk::Failure(first->failure.code(),
                     fmt::format("rank {} could not join: {}", first->rank, first->failure.what()),
                     first->failure.peer());
}

void Ending::AwaitEnd(std::chrono::nanoseconds patience) {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, patience, [this] { return static_cast<bool>(failure_); });
}

void Ending::Abort(const std::string& reason) {
  End(sdk::Failure(DTRUN_ABORTED, fmt::format("'{}' was aborted: {}", members_.name(), reason)));
}

void Ending::Report(const sdk::Failure& failure) const {
  const bool peers = failure.code() == DTRUN_REMOTE_FAILURE || failure.code() == DTRUN_TIMEOUT;
  if (reports_ && peers && failure.peer() >= 0)
    health_.ReportPeer(members_.kv(), failure.peer(), failure.what());
}

}  // namespace dtrun::comm
