#include "core/comm/hierarchy/layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/comm/operation.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {
namespace {

// Longer than the recorder takes to find calls that differ.
constexpr std::chrono::milliseconds kRecorderTime{1500};

// Whether the call was rejected, so that nothing was started.
bool IsRefusal(dtrun_status status) {
  return status == DTRUN_INVALID_ARGUMENT || status == DTRUN_UNSUPPORTED;
}

// A layer's request that represents the user's own.
class Forwarded final : public sdk::Request {
 public:
  Forwarded(Layer& layer, dtrun_request* request) : layer_(layer), request_(request) {}
  ~Forwarded() override { layer_.table().req_release(request_); }
  bool Test() override {
    PluginError error;
    return Ended(layer_.table().req_test(request_, &error), error);
  }
  bool Wait(sdk::Nanoseconds timeout) override {
    PluginError error;
    return Ended(layer_.table().req_wait_host(request_, timeout.count(), &error), error);
  }

 private:
  bool Ended(dtrun_status status, const dtrun_error& error) {
    if (status != DTRUN_OK && status != DTRUN_PENDING) layer_.Throw(status, error);
    return status == DTRUN_OK;
  }

  Layer& layer_;
  dtrun_request* const request_;
};

}  // namespace

Step::~Step() {
  if (request_ == nullptr) return;
  layer_->ending().End(sdk::Failure(DTRUN_INTERNAL, "a call ended in the middle"));
  layer_->table().req_release(request_);
}

void Step::Wait() {
  if (request_ == nullptr) return;  // it completed at once
  PluginError error;
  const dtrun_status status = layer_->table().req_wait_host(request_, -1, &error);
  if (status == DTRUN_OK) {
    layer_->table().req_release(std::exchange(request_, nullptr));
    return;
  }
  layer_->Throw(status, error);  // the other layers are aborted before the request goes
}

Layer::Layer(const dtrun_backend& table, dtrun_instance* instance, Place place, const sdk::CommParams& whole,
             shm::Deadline& deadline, Ending& ending)
    : table_(table), place_(std::move(place)), ending_(ending) {
  const auto mine = std::find(place_.ranks.begin(), place_.ranks.end(), whole.rank);
  dtrun_comm_params params;
  DTRUN_INIT(params);
  params.rank = static_cast<std::int32_t>(mine - place_.ranks.begin());
  params.size = size();
  params.host_count = place_.hosts;
  params.host = whole.host;
  params.generation = whole.generation;
  params.interface_name = sdk::internal::View(whole.interface_name);
  params.address = sdk::internal::View(whole.address);
  params.local_processors = whole.local_processors;
  params.name = sdk::internal::View(place_.name);
  params.kv = place_.kv;
  params.timeout_ns = -1;
  if (deadline.timeout_ns() >= 0)
    params.timeout_ns =
        (deadline.Left(std::chrono::nanoseconds(deadline.timeout_ns())) + place_.grace).count();
  std::vector<std::int32_t> hosts;
  for (const int rank : place_.ranks) {
    if (!whole.hosts.empty()) hosts.push_back(whole.hosts[static_cast<std::size_t>(rank)]);
  }
  params.hosts = hosts.empty() ? nullptr : hosts.data();
  params.local_rank = static_cast<std::int32_t>(
      std::count(hosts.begin(), hosts.begin() + (hosts.empty() ? 0 : params.rank), whole.host));
  params.device_kind = whole.device_kind;
  params.device_index = whole.device_index;
  PluginError error;
  const dtrun_status status = table_.comm_create(instance, &params, &comm_, &error);
  if (status != DTRUN_OK) throw InWhole(status, error, place_);
}

Step Layer::Start(dtrun_op op, shm::Deadline& deadline) {
  ending_.ThrowIfFailed();
  op.timeout_ns = -1;
  if (deadline.timeout_ns() >= 0) {
    op.timeout_ns = (deadline.Left(std::chrono::nanoseconds(deadline.timeout_ns())) + place_.grace).count();
  }
  if (sdk::IsCollective(op.kind)) op.sequence = ++calls_;
  steps_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(op.count * DtypeSize(op.dtype), std::memory_order_relaxed);
  PluginError error;
  dtrun_request* request = nullptr;
  dtrun_status status = table_.enqueue(comm_, &op, nullptr, &request, &error);
  if (IsRefusal(status)) status = DTRUN_INTERNAL;  // core has checked it, and the others continue
  if (status != DTRUN_OK && status != DTRUN_PENDING) Throw(status, error);
  return Step(*this, status == DTRUN_OK ? nullptr : request);
}

std::unique_ptr<sdk::Request> Layer::Forward(const dtrun_op& op, const dtrun_stream* stream) {
  PluginError error;
  dtrun_request* request = nullptr;
  const dtrun_status status = table_.enqueue(comm_, &op, stream, &request, &error);
  if (IsRefusal(status)) throw InWhole(status, error, place_);
  if (status == DTRUN_OK) return nullptr;
  if (status != DTRUN_PENDING) Throw(status, error);
  return std::make_unique<Forwarded>(*this, request);
}

void Layer::Abort(const std::string& reason) {
  if (table_.comm_abort == nullptr) return;
  dtrun_abort_params params;
  DTRUN_INIT(params);
  params.reason = sdk::internal::View(reason);
  sdk::Check([&](dtrun_error* error) { return table_.comm_abort(comm_, &params, error); });
}

void Layer::Snapshot(const sdk::SnapshotSink& sink) {
  if (!place_.sole) {
    sink.Line(fmt::format("{}: {} steps, {} bytes", place_.name, steps_.load(), bytes_.load()));
  }
  if (table_.snapshot == nullptr) return;
  dtrun_snapshot_sink lines;
  DTRUN_INIT(lines);
  lines.context = const_cast<sdk::SnapshotSink*>(&sink);
  lines.line = [](void* context, dtrun_string text, dtrun_error* err) {
    return sdk::Guard(err, [&] {
      static_cast<const sdk::SnapshotSink*>(context)->Line(sdk::internal::Text(text));
      return dtrun_status{DTRUN_OK};
    });
  };
  table_.snapshot(comm_, &lines);
}

void* Layer::Alloc(const dtrun_mem_params& params) {
  void* memory = nullptr;
  sdk::Check([&](dtrun_error* error) { return table_.mem_alloc(comm_, &params, &memory, error); });
  return memory;
}

void Layer::Register(const dtrun_mem_params& params, void* memory) {
  if (table_.mem_register == nullptr) return;
  sdk::Check([&](dtrun_error* error) { return table_.mem_register(comm_, &params, memory, error); });
}

void Layer::Throw(dtrun_status status, const dtrun_error& error) {
  const sdk::Failure failure = InWhole(status, error, place_);
  if (!place_.sole && status == DTRUN_MISMATCH) {
    // Core's recorder knows the calls themselves and ends the communicator shortly.
    ending_.AwaitEnd(kRecorderTime);
    ending_.Fail(sdk::Failure(status, fmt::format("calls differ, seen in a step of one: {}", failure.what()),
                              failure.peer()));
  }
  if (!place_.sole) ending_.Fail(failure);
  if (!reported_.exchange(true)) ending_.Report(failure);
  throw failure;
}

sdk::Failure InWhole(dtrun_status status, const dtrun_error& error, const Layer::Place& place) {
  const int peer = error.peer;
  const bool known = peer >= 0 && peer < std::ssize(place.ranks);
  dtrun_error whole = error;
  whole.peer = known ? place.ranks[static_cast<std::size_t>(peer)] : -1;
  std::string text = error.message;
  const auto differs = [&, i = 0](int rank) mutable { return rank != i++; };
  if (known && whole.peer != peer) {
    text += fmt::format("; rank {} of '{}' is rank {} of the communicator", peer, place.name, whole.peer);
  } else if (!known && std::any_of(place.ranks.begin(), place.ranks.end(), differs)) {
    text +=
        fmt::format("; '{}' numbers {} of the communicator from 0", place.name, sdk::RanksText(place.ranks));
  }
  sdk::FillError(&whole, status, text, whole.peer, whole.vendor_domain, whole.vendor_code);
  return sdk::Failure(whole, status);
}

}  // namespace dtrun::comm
