#include "request.h"

#include <utility>

#include "comm.h"
#include "operation.h"
#include "patience.h"

namespace dtrun::nccl_plugin {

NcclRequest::NcclRequest(NcclCommunicator& comm, std::shared_ptr<Operation> operation)
    : comm_(comm), operation_(std::move(operation)) {}

NcclRequest::~NcclRequest() {
  try {
    if (comm_.MustWaitBeforeRelease(*operation_)) Wait(sdk::kNoLimit);
  } catch (const std::exception& error) {
    comm_.NoteUnseenFailure(*operation_, error.what());
  }
  comm_.Forget(*operation_);
}

bool NcclRequest::Test() { return comm_.Poll(*operation_); }

bool NcclRequest::Wait(sdk::Nanoseconds timeout) {
  const sdk::Deadline limit(timeout);
  Patience patience;
  while (!comm_.Poll(*operation_)) {
    if (limit.passed()) return false;
    patience.Wait(limit);
  }
  return true;
}

void NcclRequest::WaitStream(const dtrun_stream& stream) { comm_.OrderAfter(*operation_, stream); }

}  // namespace dtrun::nccl_plugin
