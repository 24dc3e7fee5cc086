#include <fmt/format.h>

#include "core/comm/composed.h"
#include "core/comm/operation.h"
#include "core/comm/staging/communicator.h"

namespace dtrun::comm {

using sdk::Failure;

StagingWire::StagingWire(const Staging& staging, const dtrun_comm_params& params)
    : table_(staging.wire.table),
      instance_(staging.wire.instance),
      alone_(params.size == 1),
      name_(std::string(params.name.data, params.name.size) + " (staging)") {
  if (params.kv != nullptr) kv_.emplace(sdk::Host(staging.services), params.kv, "staging/");
  dtrun_comm_params own = params;
  own.struct_size = sizeof own;
  own.name = sdk::internal::View(name_);
  own.kv = kv_ ? kv_->raw() : nullptr;
  own.device_kind = DTRUN_DEVICE_HOST;
  own.device_index = -1;
  own.parent = nullptr;
  own.parent_ranks = nullptr;
  const dtrun_backend_caps caps = CapsOfTable(table_, instance_);
  if ((caps.features & DTRUN_CAP_NO_STREAM) != 0)
    kinds_ = caps.device_kinds & ~sdk::Bits({DTRUN_DEVICE_HOST});
  dtrun_support_query least;
  DTRUN_INIT(least);
  least.kind = DTRUN_ALLREDUCE;
  least.dtype = DTRUN_UINT64;
  least.reduce = DTRUN_MIN;
  least.device_index = -1;
  const auto has = [](std::uint64_t mask, std::int32_t bit) { return (mask >> bit & 1) != 0; };
  has_least_ =
      has(caps.ops, least.kind) && has(caps.dtypes, least.dtype) && has(caps.reduces, least.reduce) &&
      has(caps.reduce_dtypes, least.dtype) &&
      (table_.query_support == nullptr || table_.query_support(instance_, &least, nullptr) == DTRUN_OK);
  sdk::Check([&](dtrun_error* e) { return table_.comm_create(instance_, &own, &comm_, e); });
}

bool StagingWire::Takes(const dtrun_op& op, const DeviceCalls& device) const {
  if ((kinds_ >> device.kind() & 1) == 0 || alone_ || op.kind == DTRUN_BARRIER) return false;
  if (table_.query_support == nullptr) return true;
  dtrun_support_query query;
  DTRUN_INIT(query);
  query.kind = op.kind;
  query.dtype = op.dtype;
  query.reduce = op.reduce;
  query.device_kind = device.kind();
  query.device_index = device.index();
  return table_.query_support(instance_, &query, nullptr) == DTRUN_OK;
}

void StagingWire::Register(const dtrun_mem_params& params, void* memory) {
  if (alone_ || (kinds_ >> params.device_kind & 1) == 0 || table_.mem_register == nullptr) return;
  sdk::Check([&](dtrun_error* e) { return table_.mem_register(comm_, &params, memory, e); });
  const std::lock_guard lock(mutex_);
  registered_.insert(memory);
}

void StagingWire::Deregister(void* memory) {
  {
    const std::lock_guard lock(mutex_);
    if (registered_.erase(memory) == 0) return;
  }
  table_.mem_deregister(comm_, memory);
}

StagingWire::~StagingWire() { table_.comm_destroy(comm_); }

dtrun_request* StagingWire::Start(dtrun_op op, const sdk::Deadline& deadline) {
  op.flags = 0;
  op.sequence = sdk::IsCollective(op.kind) ? ++calls_ : 0;
  op.timeout_ns = deadline.never() ? -1 : std::max<std::int64_t>(1, deadline.Left().count());
  dtrun_request* request = nullptr;
  sdk::Check([&](dtrun_error* e) {
    const dtrun_status status = table_.enqueue(comm_, &op, nullptr, &request, e);
    if (status == DTRUN_OK) request = nullptr;
    return status == DTRUN_PENDING ? dtrun_status{DTRUN_OK} : status;
  });
  return request;
}

std::uint64_t StagingWire::Least(std::uint64_t value, std::uint64_t otherwise,
                                 const sdk::Deadline& deadline) {
  if (alone_) return value;
  if (!has_least_) return otherwise;
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = DTRUN_ALLREDUCE;
  op.dtype = DTRUN_UINT64;
  op.reduce = DTRUN_MIN;
  op.root = op.peer = -1;
  op.send = op.recv = &value;
  op.count = 1;
  dtrun_request* const request = Start(op, deadline);
  if (request == nullptr) return value;
  const std::unique_ptr<dtrun_request, void (*)(dtrun_request*)> owned(request, table_.req_release);
  while (!Test(request)) Wait(request, sdk::kNoLimit);  // its own timeout ends it
  return value;
}

bool StagingWire::Test(dtrun_request* request) {
  bool done = false;
  sdk::Check([&](dtrun_error* e) {
    const dtrun_status status = table_.req_test(request, e);
    done = status == DTRUN_OK;
    return status == DTRUN_PENDING ? dtrun_status{DTRUN_OK} : status;
  });
  return done;
}

void StagingWire::Wait(dtrun_request* request, sdk::Nanoseconds timeout) {
  // Test reports the outcome again, so ignore it here.
  static_cast<void>(table_.req_wait_host(request, timeout.count(), nullptr));
}

void StagingWire::Abort(const std::string& reason) {
  if (table_.comm_abort == nullptr) return;
  dtrun_abort_params params;
  DTRUN_INIT(params);
  params.reason = sdk::internal::View(reason);
  sdk::Check([&](dtrun_error* e) { return table_.comm_abort(comm_, &params, e); });
}

}  // namespace dtrun::comm
