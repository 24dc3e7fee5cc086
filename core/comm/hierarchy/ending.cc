#include "core/comm/hierarchy/ending.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

namespace dtrun::comm {
namespace {

constexpr char kKey[] = "ended";

}  // namespace

Ending::Cause Ending::Publish(Cause mine) const {
  const std::string text = fmt::format("{} {} {} {}", mine.code, mine.peer, mine.reporter, mine.text);
  try {
    if (kv_.CompareSet(kKey, std::nullopt, text)) return mine;
    const std::optional<std::string> first = kv_.TryGet(kKey);
    std::istringstream stream(first.value_or(""));
    Cause theirs;
    stream >> theirs.code >> theirs.peer >> theirs.reporter;
    stream.get();
    std::getline(stream, theirs.text, '\0');
    return theirs.text.empty() ? mine : theirs;
  } catch (const sdk::Failure&) {
    // The store went with the job: what this rank saw is all there is to say.
    return mine;
  }
}

void Ending::End(const sdk::Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (cause_) return;
  }
  const Cause first = Publish({failure.code(), failure.peer(), rank_, failure.what()});
  {
    const std::lock_guard lock(mutex_);
    if (cause_) return;
    cause_ = first;
    failed_.store(true, std::memory_order_release);
  }
  ended_.notify_all();
  Report(Seen(first));
  if (abort_) abort_(first.text);
}

void Ending::Fail(const sdk::Failure& failure) {
  End(failure);
  ThrowCause();
}

void Ending::AwaitEnd(std::chrono::nanoseconds patience) {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, patience, [this] { return cause_.has_value(); });
}

void Ending::Abort(const std::string& reason) {
  End(sdk::Failure(DTRUN_ABORTED, fmt::format("'{}' was aborted: {}", name_, reason)));
}

void Ending::Report(const sdk::Failure& failure) const {
  const bool peers = failure.code() == DTRUN_REMOTE_FAILURE || failure.code() == DTRUN_TIMEOUT;
  if (reports_ && peers && failure.peer() >= 0) health_.ReportPeer(failure.peer(), failure.what());
}

// The cause from this rank's side.
sdk::Failure Ending::Seen(const Cause& cause) const {
  if (cause.reporter == rank_) return sdk::Failure(cause.code, cause.text, cause.peer);
  if (cause.code == DTRUN_TIMEOUT) {
    return sdk::Failure(DTRUN_REMOTE_FAILURE, fmt::format("rank {} gave up: {}", cause.reporter, cause.text),
                        cause.reporter);
  }
  return sdk::Failure(cause.code, cause.text, cause.peer == rank_ ? cause.reporter : cause.peer);
}

void Ending::ThrowCause() {
  const std::lock_guard lock(mutex_);
  throw Seen(*cause_);
}

std::optional<std::string> Ending::Text() {
  const std::lock_guard lock(mutex_);
  if (!cause_) return std::nullopt;
  return cause_->text;
}

}  // namespace dtrun::comm
