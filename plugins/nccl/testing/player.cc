#include "player.h"

#include <gtest/gtest.h>

namespace dtrun::nccl_test {
namespace {

using conformance::Outcome;

dtrun_error FreshError() {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  return error;
}

dtrun_stream CudaStream(void* native) {
  dtrun_stream stream;
  DTRUN_INIT(stream);
  stream.device_kind = DTRUN_DEVICE_CUDA;
  stream.native = native;
  return stream;
}

}  // namespace

dtrun_backend_comm* Player::Join(dtrun_kv* kv, int rank, int size, int host_count, Outcome* outcome) const {
  dtrun_comm_params params;
  DTRUN_INIT(params);
  params.rank = rank;
  params.size = size;
  params.host_count = host_count;
  params.name = {"world", 5};
  params.kv = kv;
  params.timeout_ns = conformance::kPatience.count();
  dtrun_backend_comm* comm = nullptr;
  dtrun_error error = FreshError();
  const dtrun_status status = table().comm_create(subject_.instance(), &params, &comm, &error);
  *outcome = status == DTRUN_OK ? Outcome{} : Outcome{status, error.peer, error.message};
  return comm;
}

void Player::Play(int size, const Body& body) const {
  subject_.Play(size, [&](conformance::Rank& rank) { body(rank, rank.raw()); });
}

std::unique_ptr<StreamRequest> Player::Start(dtrun_backend_comm* comm, const dtrun_op& op,
                                             void* stream) const {
  const dtrun_stream on = CudaStream(stream);
  dtrun_request* request = nullptr;
  dtrun_error error = FreshError();
  if (table().enqueue(comm, &op, &on, &request, &error) != DTRUN_PENDING) {
    ADD_FAILURE() << error.message;
    return nullptr;
  }
  return std::make_unique<StreamRequest>(table(), request);
}

conformance::Outcome Player::StartDetached(dtrun_backend_comm* comm, const dtrun_op& op, void* stream) const {
  const dtrun_stream on = CudaStream(stream);
  dtrun_request* request = nullptr;
  dtrun_error error = FreshError();
  const dtrun_status status = table().enqueue(comm, &op, &on, &request, &error);
  EXPECT_EQ(request, nullptr);
  return status == DTRUN_OK ? Outcome{} : Outcome{status, error.peer, error.message};
}

dtrun_status Player::OrderAfter(const StreamRequest& request, void* stream) const {
  const dtrun_stream after = CudaStream(stream);
  return table().req_wait_stream(request.get(), &after, nullptr);
}

}  // namespace dtrun::nccl_test
