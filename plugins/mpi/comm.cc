#include "comm.h"

#include <unistd.h>

namespace dtrun::mpi_plugin {

// The parts of the others are packed, copied or scaled here in some forms of them, which a query does not
// tell.
bool MpiDoesAll(const dtrun_support_query& query) {
  switch (query.kind) {
    case DTRUN_SEND:
    case DTRUN_RECV:
    case DTRUN_BROADCAST:
    case DTRUN_ALLGATHER:
    case DTRUN_ALLTOALL:
    case DTRUN_GATHER:
    case DTRUN_SCATTER: return true;
    case DTRUN_ALLREDUCE:
    case DTRUN_REDUCE: return Combiners::IsNative(query.dtype, query.reduce);
    default: return false;
  }
}

MpiCommunicator::MpiCommunicator(const sdk::Host& host, const sdk::CommParams& params, World& world,
                                 const CommOptions& options)
    : team_(std::make_shared<Team>(host, params, world, options.coll_sm)),
      collectives_(std::make_shared<CollectiveQueue>(host, team_, options.limit, options.cuda)),
      messages_(std::make_shared<Messages>(host, team_, options.limit, options.cuda)),
      // Without an entry barrier a caller could not be taken out of MPI when its deadline passes.
      caller_runs_(options.blocking == Blocking::kCaller && team_->entry() != nullptr) {}

MpiCommunicator::~MpiCommunicator() {
  const bool collectives_ended = collectives_->Stop();
  const bool messages_ended = messages_->Stop();
  team_->Leave(collectives_ended && messages_ended);
}

std::unique_ptr<sdk::Request> MpiCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream*) {
  team_->failure().ThrowIfSet();
  const bool blocking = (op.flags & DTRUN_OP_BLOCKING) != 0;
  if (!sdk::IsCollective(op.kind)) {
    return std::make_unique<MessageRequest>(messages_, messages_->Add(op, blocking));
  }
  return std::make_unique<CollectiveRequest>(collectives_, collectives_->Add(op, blocking && caller_runs_));
}

void MpiCommunicator::Abort(const std::string& reason) {
  team_->Fail(sdk::Failure(DTRUN_ABORTED, reason), Fate::kAborted);
}

void MpiCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  sink.Line("rank " + std::to_string(team_->rank()) + " of " + std::to_string(team_->size()) + " in '" +
            team_->name() + "': collective " + std::to_string(collectives_->last_done()) + " of " +
            std::to_string(collectives_->last_added()) + " done");
  if (team_->failure()) sink.Line(std::string("failed: ") + team_->failure()->what());
  int first = -1;
  const std::string missing = team_->MissingRanks(collectives_->last_added(), &first);
  if (!missing.empty()) sink.Line("still missing: " + missing);
}

}  // namespace dtrun::mpi_plugin
