#include "comm.h"

#include <utility>

namespace dtrun::ucx_plugin {

UcxCommunicator::UcxCommunicator(const sdk::Host& host, const sdk::CommParams& params,
                                 std::shared_ptr<Context> context)
    : engine_(host, params, std::move(context)) {}

std::unique_ptr<UcxRequest> UcxCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream*) {
  auto operation = std::make_shared<Operation>(op, engine_.members().size());
  engine_.Submit(operation);
  return std::make_unique<UcxRequest>(engine_, std::move(operation));
}

void UcxCommunicator::Abort(const std::string& reason) {
  engine_.Fail(sdk::Failure(DTRUN_ABORTED, "'" + engine_.members().name() + "' was aborted: " + reason));
}

void UcxCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  for (const std::string& line : engine_.Lines()) sink.Line(line);
}

}  // namespace dtrun::ucx_plugin
