// How a communicator fails: who notices, what it is called, and how the others learn of it.
#include <algorithm>

#include "comm.h"
#include "nccl_api.h"

namespace dtrun::nccl_plugin {
namespace {

using sdk::Failure;

constexpr auto kStateEvery = std::chrono::milliseconds(10);
// A wait that is longer than this is worth a look at the key-value space; most are not.
constexpr auto kLong = std::chrono::milliseconds(100);
constexpr auto kLookEvery = std::chrono::milliseconds(100);

// True for one caller in each `period`.
bool Due(std::atomic<std::int64_t>& next, sdk::Nanoseconds period) {
  const std::int64_t now = sdk::Nanoseconds(Clock::now().time_since_epoch()).count();
  std::int64_t due = next;
  return now >= due && next.compare_exchange_strong(due, now + period.count());
}

std::string WaitingKey(int rank) { return "waiting/" + std::to_string(rank); }

}  // namespace

void NcclCommunicator::Watch(const Operation& operation) {
  if (operation.deadline.passed()) throw TimedOut(operation);
  if (Due(next_state_, kStateEvery)) {
    const nccl::Result state = handle_->State();
    if (state != nccl::kSuccess && state != nccl::kInProgress) {
      failure_.ThrowIfSet();
      LookAround(operation);  // another rank may have said more than NCCL does
      throw NcclFailure(environment_.nccl, "finish " + operation.text + " of '" + members_.name() + "'",
                        state);
    }
  }
  if (Clock::now() - operation.begun > kLong && Due(next_look_, kLookEvery)) LookAround(operation);
}

void NcclCommunicator::LookAround(const Operation& operation) {
  if (const auto failure = members_.FailureOfAnother()) {
    if (failure->code() == DTRUN_REMOTE_FAILURE)
      health_.ReportPeer(members_.kv(), failure->peer(), failure->what());
    throw *failure;
  }
  const dtrun_op& op = *operation.op;
  if (!operation.point_to_point() && announced_wait_.exchange(op.sequence) != op.sequence) {
    members_.kv().Set(WaitingKey(members_.rank()), std::to_string(op.sequence));
  }
  if (!members_.AnyLeft()) return;
  for (int rank = 0; rank < members_.size(); ++rank) {
    const std::optional<std::string> last = members_.Left(rank);
    if (!last) continue;
    const Progress progress = Progress::Decode(*last);
    if (operation.point_to_point()) {
      const auto theirs = progress.messages.find(members_.rank());
      const std::uint64_t answered = theirs == progress.messages.end() ? 0 : theirs->second;
      if (rank != op.peer || answered >= operation.message) continue;
    } else if (progress.collective >= op.sequence) {
      continue;
    }
    const std::string text = "rank " + std::to_string(rank) + " left '" + members_.name() +
                             "' without taking part in " + operation.text + "; its last call was " +
                             std::to_string(progress.collective);
    health_.ReportPeer(members_.kv(), rank, text);
    throw Failure(DTRUN_REMOTE_FAILURE, text, rank);
  }
}

std::vector<int> NcclCommunicator::NotWaitingIn(std::uint64_t sequence) const {
  std::vector<int> others;
  for (int rank = 0; rank < members_.size(); ++rank) {
    if (rank == members_.rank()) continue;
    const auto value = members_.kv().TryGet(WaitingKey(rank));
    if (!value || std::stoull(*value) < sequence) others.push_back(rank);
  }
  return others;
}

Failure NcclCommunicator::TimedOut(const Operation& operation) const {
  const std::vector<int> suspects = operation.point_to_point() ? std::vector<int>{operation.op->peer}
                                                               : NotWaitingIn(operation.op->sequence);
  const sdk::Nanoseconds waited = Clock::now() - operation.begun;
  std::string text =
      operation.text + " of '" + members_.name() + "' did not end within " + sdk::DurationText(waited) + "; ";
  if (!suspects.empty()) {
    text += "no sign of " + sdk::RanksText(suspects) + " in it";
  } else if (last_completed_ == 0) {
    text += "all ranks wait in their first call, so a path between the devices is broken";
  } else {
    text += "all ranks wait in it, so the devices or the network between them are stuck";
  }
  return Failure(DTRUN_TIMEOUT, text, suspects.size() == 1 ? suspects.front() : -1);
}

void NcclCommunicator::Fail(const Failure& cause) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    const cuda::BesideCaptures relaxed(environment_.cuda);
    // A finished operation stays finished, even if it has not been queried yet.
    for (Operation* const operation : std::vector<Operation*>(live_.begin(), live_.end())) {
      const bool done =
          environment_.cuda.Handled(environment_.cuda.event_query(operation->event)) == cuda::kSuccess;
      operation->phase = done ? Phase::kDone : Phase::kFailed;
    }
    live_.clear();
    failure_.Set(cause);
  }
  handle_->Abort();
  try {
    members_.PublishFailure(cause);
  } catch (const Failure& failure) {
    log_.Debug(std::string("the other ranks cannot be told: ") + failure.what());
  }
}

void NcclCommunicator::Abort(const std::string& reason) {
  Fail(Failure(DTRUN_ABORTED, "'" + members_.name() + "' was aborted: " + reason));
}

void NcclCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  sink.Line("collectives enqueued up to " + std::to_string(last_enqueued_) + ", seen complete up to " +
            std::to_string(last_completed_));
  sink.Line("device " + std::to_string(device_) + ", NCCL " + environment_.nccl.VersionText() +
            (bootstrap_.empty() ? "" : ", rank 0 listened on " + bootstrap_));
  if (failure_) sink.Line(std::string("failed: ") + failure_->what());
}

}  // namespace dtrun::nccl_plugin
