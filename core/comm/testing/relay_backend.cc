// A backend for tests: every operation goes through the key-value store.
//
// Real and slow, so that ranks in several processes can be tested without a network or a vendor library.
// Collectives and receives run on one thread per communicator, in order; a send stores its message at once.
// Keys are never erased, because worlds in tests are short-lived. Supports every operation and type.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dtrun/abi.h"
#include "dtrun/kernels.hpp"
#include "dtrun/plugin/names.hpp"
#include "relay_exchange.h"

namespace {

using Clock = std::chrono::steady_clock;
using dtrun::comm::testing::Exchange;
using dtrun::comm::testing::ExchangeOf;
using dtrun::comm::testing::Part;

const dtrun_host* services = nullptr;
const dtrun_kv_service* kv_service = nullptr;
const dtrun_memory_service* memory_service = nullptr;

dtrun_status Fail(dtrun_error* err, dtrun_status code, const std::string& text, int peer = -1) {
  return dtrun_error_set_text(err, code, peer, text.data(), text.size());
}

dtrun_string View(const std::string& text) { return {text.c_str(), text.size()}; }

}  // namespace

struct dtrun_request {
  dtrun_backend_comm* comm = nullptr;
  dtrun_op op{};
  Exchange exchange;  // of a collective
  Clock::time_point deadline;
  bool done = false;
  dtrun_status status = DTRUN_OK;
  dtrun_error error{};
};

struct dtrun_backend_comm {
  int rank = 0, size = 1;
  dtrun_kv* kv = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<dtrun_request*> queue;
  // Messages so far, by peer and tag: those sent, of enqueue; those received, of the worker.
  std::map<std::pair<int, std::uint32_t>, std::uint64_t> sent, received;
  std::string abort_reason;
  bool aborted = false, stopping = false;
  std::thread worker;

  static std::string MessageKey(int from, int to, std::uint32_t tag, std::uint64_t number) {
    return "p/" + std::to_string(from) + "/" + std::to_string(to) + "/" + std::to_string(tag) + "/" +
           std::to_string(number);
  }

  // Waits in slices, so that it notices an abort.
  dtrun_status Fetch(const std::string& key, int peer, Clock::time_point deadline, std::string& out,
                     dtrun_error* err) {
    for (;;) {
      {
        const std::lock_guard lock(mutex);
        if (aborted) return Fail(err, DTRUN_ABORTED, abort_reason);
      }
      void* data = nullptr;
      std::uint64_t bytes = 0;
      dtrun_error error;
      DTRUN_ERROR_INIT(error);
      const dtrun_status status = kv_service->get(services, kv, View(key), 20'000'000, &data, &bytes, &error);
      if (status == DTRUN_OK) {
        out.assign(static_cast<const char*>(data), bytes);
        memory_service->release(services, data);
        return DTRUN_OK;
      }
      if (status != DTRUN_TIMEOUT) return Fail(err, status, error.message, peer);
      if (Clock::now() >= deadline) {
        return Fail(err, DTRUN_TIMEOUT, "rank " + std::to_string(peer) + " did not come in time", peer);
      }
    }
  }

  dtrun_status Publish(const std::string& key, const void* data, std::uint64_t bytes, dtrun_error* err) {
    return kv_service->set(services, kv, View(key), bytes == 0 ? "" : data, bytes, err);
  }

  // A rank with an unread message with this tag, or -1.
  int Sender(std::uint32_t tag) {
    for (int r = 0; r < size; ++r) {
      void* data = nullptr;
      std::uint64_t bytes = 0;
      const std::string key = MessageKey(r, rank, tag, received[{r, tag}]);
      if (kv_service->try_get(services, kv, View(key), &data, &bytes, nullptr) != DTRUN_OK) continue;
      memory_service->release(services, data);
      return r;
    }
    return -1;
  }

  dtrun_status Receive(const dtrun_request& request, dtrun_error* err) {
    const dtrun_op& op = request.op;
    int peer = op.peer;
    while (peer == DTRUN_ANY_SOURCE) {
      peer = Sender(op.tag);
      {
        const std::lock_guard lock(mutex);
        if (aborted) return Fail(err, DTRUN_ABORTED, abort_reason);
      }
      if (peer < 0 && Clock::now() >= request.deadline)
        return Fail(err, DTRUN_TIMEOUT, "no rank sent in time");
    }
    std::string data;
    const std::string key = MessageKey(peer, rank, op.tag, received[{peer, op.tag}]++);
    const dtrun_status status = Fetch(key, peer, request.deadline, data, err);
    if (status != DTRUN_OK) return status;
    if (data.size() != op.count * dtrun::kernels::ElementBytes(op.dtype)) {
      return Fail(err, DTRUN_VENDOR, "the message has another size", peer);
    }
    std::memcpy(op.recv, data.data(), data.size());
    if (op.source != nullptr) *op.source = peer;
    return DTRUN_OK;
  }

  dtrun_status Run(const dtrun_request& request, dtrun_error* err) {
    const dtrun_op& op = request.op;
    if (op.kind == DTRUN_RECV) return Receive(request, err);
    const std::uint64_t size_of = dtrun::kernels::ElementBytes(op.dtype);
    const std::string prefix = "c/" + std::to_string(op.sequence) + "/";
    const auto key = [&](int from, int to) {
      return prefix + std::to_string(from) + "/" + std::to_string(to);
    };
    const char* source = static_cast<const char*>(op.kind == DTRUN_BROADCAST ? op.recv : op.send);
    for (int to = 0; to < size; ++to) {
      const std::optional<Part> part = request.exchange.give[static_cast<std::size_t>(to)];
      if (!part) continue;
      std::string bytes;
      if (part->count > 0) bytes.assign(source + part->offset * size_of, part->count * size_of);
      if (op.reduce == DTRUN_PREMUL_SUM) {
        dtrun::kernels::Scale(bytes.data(), bytes.data(), part->count, op.dtype, op.scale);
      }
      const dtrun_status status = Publish(key(rank, to), bytes.data(), bytes.size(), err);
      if (status != DTRUN_OK) return status;
    }
    std::vector<std::string> parts(static_cast<std::size_t>(size));
    for (int from = 0; from < size; ++from) {
      const auto i = static_cast<std::size_t>(from);
      const std::optional<Part> part = request.exchange.take[i];
      if (!part) continue;
      const dtrun_status status = Fetch(key(from, rank), from, request.deadline, parts[i], err);
      if (status != DTRUN_OK) return status;
      if (parts[i].size() != part->count * size_of) {
        return Fail(err, DTRUN_VENDOR, "rank " + std::to_string(from) + " sent another size", from);
      }
      if (!request.exchange.reduces && !parts[i].empty()) {
        std::memcpy(static_cast<char*>(op.recv) + part->offset * size_of, parts[i].data(), parts[i].size());
      }
    }
    if (request.exchange.reduces) {
      std::vector<const void*> sources;
      for (const std::string& part : parts) sources.push_back(part.data());
      const std::uint64_t count = parts[0].size() / size_of;
      dtrun::kernels::ReduceFor(op.dtype, op.reduce)(op.recv, sources.data(), size, count);
    }
    return DTRUN_OK;
  }

  void Work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stopping || !queue.empty(); });
      if (queue.empty()) return;
      dtrun_request* request = queue.front();
      lock.unlock();
      const dtrun_status status = Run(*request, &request->error);
      lock.lock();
      queue.pop_front();
      request->status = status;
      request->done = true;
      changed.notify_all();
    }
  }
};

namespace {

dtrun_status QueryCaps(dtrun_instance*, dtrun_backend_caps* out, dtrun_error*) {
  out->features = DTRUN_CAP_ABORT | DTRUN_CAP_ANY_SOURCE;
  out->ops = (1u << dtrun::sdk::kOperationEnd) - 2;
  out->dtypes = out->reduce_dtypes = (1u << dtrun::sdk::kTypeEnd) - 2;
  out->reduces = (1u << dtrun::sdk::kReductionEnd) - 2;
  out->device_kinds = 1u << DTRUN_DEVICE_HOST;
  const char* const other = std::getenv("RELAY_TYPES");  // a rank that is unlike the others
  if (other != nullptr) out->dtypes = out->reduce_dtypes = std::strtoull(other, nullptr, 0);
  out->max_bytes = DTRUN_KV_MAX_VALUE_BYTES;
  return DTRUN_OK;
}

dtrun_status Create(dtrun_instance*, const dtrun_comm_params* params, dtrun_backend_comm** out,
                    dtrun_error* err) {
  std::vector<std::string> names;
  std::vector<dtrun_string> keys;
  for (int r = 0; r < params->size; ++r) names.push_back("join/" + std::to_string(r));
  for (const std::string& name : names) keys.push_back(View(name));
  const dtrun_string mine = keys[static_cast<std::size_t>(params->rank)];
  dtrun_status status = kv_service->set(services, params->kv, mine, "", 0, err);
  if (status == DTRUN_OK) {
    status = kv_service->wait_many(services, params->kv, keys.data(), keys.size(), params->timeout_ns, err);
  }
  if (status != DTRUN_OK) return status;
  auto* comm = new dtrun_backend_comm;
  comm->rank = params->rank;
  comm->size = params->size;
  comm->kv = params->kv;
  comm->worker = std::thread([comm] { comm->Work(); });
  *out = comm;
  return DTRUN_OK;
}

void Destroy(dtrun_backend_comm* comm) {
  {
    const std::lock_guard lock(comm->mutex);
    comm->stopping = true;
  }
  comm->changed.notify_all();
  comm->worker.join();
  delete comm;
}

dtrun_status Abort(dtrun_backend_comm* comm, const dtrun_abort_params* params, dtrun_error*) {
  const std::lock_guard lock(comm->mutex);
  comm->aborted = true;
  comm->abort_reason.assign(params->reason.data, params->reason.size);
  return DTRUN_OK;
}

dtrun_status Enqueue(dtrun_backend_comm* comm, const dtrun_op* op, const dtrun_stream*, dtrun_request** out,
                     dtrun_error* err) {
  if (op->kind == DTRUN_SEND) {
    const std::uint64_t number = comm->sent[{op->peer, op->tag}]++;
    return comm->Publish(dtrun_backend_comm::MessageKey(comm->rank, op->peer, op->tag, number), op->send,
                         op->count * dtrun::kernels::ElementBytes(op->dtype), err);
  }
  auto* request = new dtrun_request;
  request->comm = comm;
  request->op = *op;
  request->deadline =
      Clock::now() + (op->timeout_ns < 0 ? std::chrono::hours(1) : std::chrono::nanoseconds(op->timeout_ns));
  DTRUN_ERROR_INIT(request->error);
  if (op->kind != DTRUN_RECV) request->exchange = ExchangeOf(*op, comm->rank, comm->size);
  {
    const std::lock_guard lock(comm->mutex);
    comm->queue.push_back(request);
  }
  comm->changed.notify_all();
  *out = request;
  return DTRUN_PENDING;
}

dtrun_status Outcome(const dtrun_request& request, dtrun_error* err) {
  if (request.status != DTRUN_OK && err != nullptr) *err = request.error;
  return request.status;
}

dtrun_status Test(dtrun_request* request, dtrun_error* err) {
  const std::lock_guard lock(request->comm->mutex);
  return request->done ? Outcome(*request, err) : DTRUN_PENDING;
}

dtrun_status WaitHost(dtrun_request* request, std::int64_t timeout_ns, dtrun_error* err) {
  std::unique_lock lock(request->comm->mutex);
  const auto done = [&] { return request->done; };
  if (timeout_ns < 0) {
    request->comm->changed.wait(lock, done);
  } else if (!request->comm->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), done)) {
    return DTRUN_PENDING;
  }
  return Outcome(*request, err);
}

void Release(dtrun_request* request) {
  {
    std::unique_lock lock(request->comm->mutex);
    request->comm->changed.wait(lock, [&] { return request->done; });
  }
  delete request;
}

dtrun_status Init(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err) {
  const dtrun_host* const host = params->host;
  services = host;
  kv_service = static_cast<const dtrun_kv_service*>(host->get_service(host, DTRUN_KV_SERVICE));
  memory_service = static_cast<const dtrun_memory_service*>(host->get_service(host, DTRUN_MEMORY_SERVICE));
  if (kv_service == nullptr || memory_service == nullptr) {
    return Fail(err, DTRUN_UNSUPPORTED, "the host lacks kv or memory");
  }
  static char instance;
  *out = reinterpret_cast<dtrun_instance*>(&instance);
  return DTRUN_OK;
}

void Shutdown(dtrun_instance*) {}

}  // namespace

dtrun_status dtrun_plugin_entry_v1(const dtrun_host*, const dtrun_plugin** out, dtrun_error*) {
  static dtrun_backend backend;
  static dtrun_plugin plugin;
  DTRUN_INIT(backend);
  backend.query_caps = QueryCaps;
  backend.comm_create = Create;
  backend.comm_destroy = Destroy;
  backend.comm_abort = Abort;
  backend.enqueue = Enqueue;
  backend.req_test = Test;
  backend.req_wait_host = WaitHost;
  backend.req_release = Release;
  DTRUN_PLUGIN_INIT(plugin);
  plugin.kind = DTRUN_KIND_BACKEND;
  plugin.name = "relay";
  plugin.version = "0.1.0";
  plugin.vendor = "dtrun";
  plugin.license = "Apache-2.0";
  plugin.summary = "moves everything through the key-value store, for tests";
  plugin.init = Init;
  plugin.shutdown = Shutdown;
  plugin.backend = &backend;
  *out = &plugin;
  return DTRUN_OK;
}
