#include "comm.h"

#include <utility>

#include "dtrun/algorithms.hpp"
#include "dtrun/kernels.hpp"

namespace dtrun::ucx_plugin {

using sdk::Failure;

UcxCommunicator::UcxCommunicator(const sdk::Host& host, const sdk::CommParams& params,
                                 std::shared_ptr<Context> context)
    : default_timeout_(params.timeout), engine_(host, params, std::move(context)) {}

std::unique_ptr<UcxRequest> UcxCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream* stream) {
  if (stream != nullptr && stream->device_kind != 0) {
    throw Failure(DTRUN_UNSUPPORTED,
                  "ucx moves host memory only; copy to the host or choose another backend");
  }
  const Roster& roster = engine_.roster();
  algorithms::CheckOperation(op, roster.rank(), roster.size());
  const bool collective = algorithms::IsCollective(op.kind);
  dtrun_op given = op;
  if (!collective) given.count *= kernels::ElementBytes(op.dtype);
  const sdk::Nanoseconds timeout = op.timeout_ns == 0 ? default_timeout_ : sdk::Nanoseconds(op.timeout_ns);
  auto operation = std::make_shared<Operation>(given, roster.size(), collectives_ + 1, timeout);
  engine_.Submit(operation);
  if (collective) ++collectives_;
  return std::make_unique<UcxRequest>(engine_, std::move(operation));
}

void UcxCommunicator::Abort(const std::string& reason) {
  engine_.Fail({DTRUN_ABORTED, "'" + engine_.roster().name() + "' was aborted: " + reason});
}

void UcxCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  for (const std::string& line : engine_.Lines()) sink.Line(line);
}

}  // namespace dtrun::ucx_plugin
