#include "comm.h"

#include <unistd.h>

namespace dtrun::mpi_plugin {

MpiCommunicator::MpiCommunicator(const sdk::Host& host, const sdk::CommParams& params, World& world,
                                 const CommOptions& options)
    : team_(std::make_shared<Team>(host, params, world, options.coll_sm)),
      line_(std::make_shared<Line>(host, team_, options.limit)),
      messages_(std::make_shared<Messages>(host, team_, options.limit)),
      // Without a meeting a caller could not be taken out of MPI when its deadline passes.
      caller_runs_(options.blocking == Blocking::kCaller && team_->meeting() != nullptr) {}

MpiCommunicator::~MpiCommunicator() {
  const bool line_ended = line_->Stop();
  const bool messages_ended = messages_->Stop();
  team_->Leave(line_ended && messages_ended);
}

std::unique_ptr<sdk::Request> MpiCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream*) {
  team_->ThrowIfFailed();
  const bool blocking = (op.flags & DTRUN_OP_BLOCKING) != 0;
  if (!sdk::IsCollective(op.kind)) {
    return std::make_unique<MessageRequest>(messages_, messages_->Add(op, blocking));
  }
  return std::make_unique<CollectiveRequest>(line_, line_->Add(op, blocking && caller_runs_));
}

void MpiCommunicator::Abort(const std::string& reason) {
  team_->Fail(sdk::Failure(DTRUN_ABORTED, reason), Fate::kAborted);
}

void MpiCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  sink.Line("rank " + std::to_string(team_->rank()) + " of " + std::to_string(team_->size()) + " in '" +
            team_->name() + "': collective " + std::to_string(line_->last_done()) + " of " +
            std::to_string(line_->last_added()) + " done");
  if (team_->failed()) sink.Line(std::string("failed: ") + team_->Cause().what());
  int first = -1;
  const std::string missing = team_->MissingRanks(line_->last_added(), &first);
  if (!missing.empty()) sink.Line("still missing: " + missing);
}

}  // namespace dtrun::mpi_plugin
