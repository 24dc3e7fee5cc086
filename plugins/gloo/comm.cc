#include "comm.h"

#include <new>

#include "direct.h"
#include "p2p.h"
#include "signals.h"
#include "timer.h"

namespace dtrun::gloo_plugin {

using sdk::Failure;

GlooCommunicator::GlooCommunicator(const sdk::Host& host, const sdk::CommParams& params,
                                   const interfaces::Interface& interface)
    : mesh_(host, params, interface), messenger_(mesh_), calls_(host, *this, "gloo-worker", params.size) {}

std::unique_ptr<sdk::Request> GlooCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream*) {
  mesh_.ThrowIfFailed();
  if (!sdk::IsCollective(op.kind)) return std::make_unique<PointToPointRequest>(mesh_, op);
  last_enqueued_ = op.sequence;
  return calls_.Enqueue(op);
}

void GlooCommunicator::Run(sdk::Running& running) {
  const dtrun_op& op = *running.op;
  last_started_ = op.sequence;
  if (mesh_.size() == 1) {
    algorithms::RunAlone(op);
  } else {
    mesh_.ThrowIfFailed();
    const NoSigpipe quiet;
    Operation operation(op);
    const TimerEntry timeout(*mesh_.timer(), running.deadline.Start(), [&] { mesh_.FailTimeout(operation); });
    try {
      messenger_.Begin(operation, op);
      if (Direct::Serves(op, mesh_.size())) {
        Direct(op, messenger_.slot()).Run(mesh_, operation);
      } else {
        algorithms::RunCollective(messenger_, op);
      }
    } catch (const std::bad_alloc&) {
      // Half done, so the other ranks cannot finish either.
      mesh_.Fail(Failure(DTRUN_OUT_OF_MEMORY, operation.text + " needs more memory than there is"));
      mesh_.ThrowIfFailed();
    }
  }
  last_completed_ = op.sequence;
}

void GlooCommunicator::Abandon(const sdk::Running& running) { mesh_.FailTimeout(Operation(*running.op)); }

void GlooCommunicator::Abort(const std::string& reason) {
  mesh_.Fail(Failure(DTRUN_ABORTED, "'" + mesh_.name() + "' was aborted: " + reason));
}

void GlooCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  sink.Line("collectives enqueued up to " + std::to_string(last_enqueued_) + ", started up to " +
            std::to_string(last_started_) + ", completed up to " + std::to_string(last_completed_));
  if (mesh_.failure()) sink.Line(std::string("failed: ") + mesh_.failure()->what());
}

}  // namespace dtrun::gloo_plugin
