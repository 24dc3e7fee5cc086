#include "raw_calls.h"

#include <gtest/gtest.h>

#include "guard.h"

namespace dtrun::conformance {

dtrun_error EmptyError() {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  return error;
}

dtrun_comm_params Params(dtrun_kv* kv, int rank, int size, const std::int32_t* hosts) {
  dtrun_comm_params params;
  DTRUN_INIT(params);
  params.rank = params.local_rank = rank;
  params.size = size;
  params.host_count = 1;
  params.hosts = hosts;
  params.device_kind = DTRUN_DEVICE_HOST;
  params.device_index = -1;
  params.name = {"world", 5};
  params.kv = kv;
  params.timeout_ns = kPatience.count();
  return params;
}

dtrun_status RunGuarded(const Subject& subject, const Rank& rank, const dtrun_op& op, std::size_t bytes,
                        dtrun_error* error) {
  dtrun_request* request = nullptr;
  dtrun_status status = DTRUN_OK;
  {
    const Guarded<dtrun_op> guarded("dtrun_op", op, bytes);
    status = subject.table().enqueue(rank.raw(), guarded.get(), nullptr, &request, error);
    EXPECT_EQ(guarded.Writes(), "");
  }
  if (status != DTRUN_PENDING) return status;
  status = subject.table().req_wait_host(request, kPatience.count(), error);
  subject.table().req_release(request);
  return status;
}

dtrun_status TakeFact(void*, const char*, dtrun_string, dtrun_error*) { return DTRUN_OK; }
dtrun_status TakeVariable(void*, const char*, const char*, dtrun_error*) { return DTRUN_OK; }

}  // namespace dtrun::conformance
