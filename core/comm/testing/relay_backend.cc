// A backend for tests: every operation goes through the key-value store.
//
// Real and slow, so that ranks in several processes can be tested without a network or a
// vendor library. Collectives and receives run on one thread per communicator, in order;
// a send stores its message at once. Keys are never erased: worlds of tests are short.
// Knows float32, float64 and int64.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "dtrun/abi.h"

namespace {

using Clock = std::chrono::steady_clock;

const dtrun_kv_service* kv_service = nullptr;
const dtrun_memory_service* memory_service = nullptr;

dtrun_status Fail(dtrun_error* err, dtrun_status code, const std::string& text, int peer = -1) {
  if (err == nullptr) return code;
  err->code = code;
  err->peer = peer;
  const std::size_t size = std::min(text.size(), sizeof err->message - 1);
  std::memcpy(err->message, text.data(), size);
  err->message[size] = '\0';
  return code;
}

dtrun_string View(const std::string& text) { return {text.c_str(), text.size()}; }

std::uint64_t SizeOf(std::int32_t dtype) { return dtype == DTRUN_FLOAT32 ? 4 : 8; }

template <class T>
void Combine(T* into, const T* from, std::uint64_t count, std::int32_t reduce) {
  for (std::uint64_t i = 0; i < count; ++i) {
    switch (reduce) {
      case DTRUN_PROD: into[i] = into[i] * from[i]; break;
      case DTRUN_MIN: into[i] = from[i] < into[i] ? from[i] : into[i]; break;
      case DTRUN_MAX: into[i] = from[i] > into[i] ? from[i] : into[i]; break;
      default: into[i] = into[i] + from[i]; break;
    }
  }
}

template <class T>
void ReduceAs(const std::vector<std::string>& parts, std::uint64_t skip, const dtrun_op& op, int size) {
  std::vector<T> sum(op.count), next(op.count);
  std::memcpy(sum.data(), parts[0].data() + skip, op.count * sizeof(T));
  for (std::size_t r = 1; r < parts.size(); ++r) {
    std::memcpy(next.data(), parts[r].data() + skip, op.count * sizeof(T));
    Combine(sum.data(), next.data(), op.count, op.reduce);
  }
  if (op.reduce == DTRUN_AVG) {
    for (T& value : sum) value = value / static_cast<T>(size);
  }
  std::memcpy(op.recv, sum.data(), op.count * sizeof(T));
}

void Reduce(const std::vector<std::string>& parts, std::uint64_t skip, const dtrun_op& op, int size) {
  switch (op.dtype) {
    case DTRUN_FLOAT32: return ReduceAs<float>(parts, skip, op, size);
    case DTRUN_FLOAT64: return ReduceAs<double>(parts, skip, op, size);
    default: return ReduceAs<std::int64_t>(parts, skip, op, size);
  }
}

}  // namespace

struct dtrun_request {
  dtrun_backend_comm* comm = nullptr;
  dtrun_op op{};
  std::string key;  // recv: of the message
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
  std::map<std::tuple<int, int, std::uint32_t>, std::uint64_t> messages;  // by from, to, tag
  std::string abort_reason;
  bool aborted = false, stopping = false;
  std::thread worker;

  std::string MessageKey(int from, int to, std::uint32_t tag) {
    const std::uint64_t number = messages[{from, to, tag}]++;
    return "p/" + std::to_string(from) + "/" + std::to_string(to) + "/" + std::to_string(tag) + "/" +
           std::to_string(number);
  }

  // Waits in slices, so that an abort is noticed.
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
      DTRUN_INIT(error);
      const dtrun_status status = kv_service->get(kv, View(key), 20'000'000, &data, &bytes, &error);
      if (status == DTRUN_OK) {
        out.assign(static_cast<const char*>(data), bytes);
        memory_service->release(data);
        return DTRUN_OK;
      }
      if (status != DTRUN_TIMEOUT) return Fail(err, status, error.message, peer);
      if (Clock::now() >= deadline) {
        return Fail(err, DTRUN_TIMEOUT, "rank " + std::to_string(peer) + " did not come in time", peer);
      }
    }
  }

  dtrun_status Publish(const std::string& key, const void* data, std::uint64_t bytes, dtrun_error* err) {
    return kv_service->set(kv, View(key), bytes == 0 ? "" : data, bytes, err);
  }

  dtrun_status Run(const dtrun_request& request, dtrun_error* err) {
    const dtrun_op& op = request.op;
    const std::uint64_t part = op.count * SizeOf(op.dtype);
    if (op.kind == DTRUN_RECV) {
      std::string data;
      const dtrun_status status = Fetch(request.key, op.peer, request.deadline, data, err);
      if (status != DTRUN_OK) return status;
      if (data.size() != part) return Fail(err, DTRUN_VENDOR, "the message has another size", op.peer);
      std::memcpy(op.recv, data.data(), part);
      return DTRUN_OK;
    }
    const std::string key = "c/" + std::to_string(op.sequence) + "/";
    const bool is_root = op.kind == DTRUN_BROADCAST && op.root == rank;
    if (op.kind != DTRUN_BROADCAST || is_root) {
      const void* data = is_root ? op.recv : op.send;
      const std::uint64_t bytes = op.kind == DTRUN_BARRIER          ? 0
                                  : op.kind == DTRUN_REDUCE_SCATTER ? part * static_cast<std::uint64_t>(size)
                                                                    : part;
      const dtrun_status status = Publish(key + std::to_string(rank), data, bytes, err);
      if (status != DTRUN_OK) return status;
    }
    if (is_root) return DTRUN_OK;
    std::vector<std::string> parts(static_cast<std::size_t>(size));
    for (int r = 0; r < size; ++r) {
      if (op.kind == DTRUN_BROADCAST && r != op.root) continue;
      const dtrun_status status =
          Fetch(key + std::to_string(r), r, request.deadline, parts[static_cast<std::size_t>(r)], err);
      if (status != DTRUN_OK) return status;
    }
    switch (op.kind) {
      case DTRUN_ALLREDUCE: Reduce(parts, 0, op, size); break;
      case DTRUN_REDUCE_SCATTER: Reduce(parts, part * static_cast<std::uint64_t>(rank), op, size); break;
      case DTRUN_BROADCAST:
        std::memcpy(op.recv, parts[static_cast<std::size_t>(op.root)].data(), part);
        break;
      case DTRUN_ALLGATHER:
        for (std::size_t r = 0; r < parts.size(); ++r) {
          std::memcpy(static_cast<char*>(op.recv) + r * part, parts[r].data(), part);
        }
        break;
      default: break;
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
  out->flags = DTRUN_CAP_ABORT;
  out->ops = (1u << DTRUN_OP_COUNT) - 2;
  out->dtypes = 1u << DTRUN_FLOAT32 | 1u << DTRUN_FLOAT64 | 1u << DTRUN_INT64;
  out->reduces = (1u << DTRUN_REDUCE_COUNT) - 2;
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
  dtrun_status status = kv_service->set(params->kv, mine, "", 0, err);
  if (status == DTRUN_OK) {
    status = kv_service->wait_many(params->kv, keys.data(), keys.size(), params->timeout_ns, err);
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

void Abort(dtrun_backend_comm* comm, dtrun_string reason) {
  const std::lock_guard lock(comm->mutex);
  comm->aborted = true;
  comm->abort_reason.assign(reason.data, reason.size);
}

dtrun_status Enqueue(dtrun_backend_comm* comm, const dtrun_op* op, const dtrun_stream*, dtrun_request** out,
                     dtrun_error* err) {
  auto* request = new dtrun_request;
  request->comm = comm;
  request->op = *op;
  request->deadline =
      Clock::now() + (op->timeout_ns < 0 ? std::chrono::hours(1) : std::chrono::nanoseconds(op->timeout_ns));
  DTRUN_INIT(request->error);
  if (op->kind == DTRUN_SEND) {
    const dtrun_status status = comm->Publish(comm->MessageKey(comm->rank, op->peer, op->tag), op->send,
                                              op->count * SizeOf(op->dtype), err);
    if (status != DTRUN_OK) {
      delete request;
      return status;
    }
    request->done = true;
  } else {
    if (op->kind == DTRUN_RECV) request->key = comm->MessageKey(op->peer, comm->rank, op->tag);
    const std::lock_guard lock(comm->mutex);
    comm->queue.push_back(request);
  }
  comm->changed.notify_all();
  *out = request;
  return DTRUN_OK;
}

dtrun_status Outcome(const dtrun_request& request, dtrun_error* err) {
  if (request.status != DTRUN_OK && err != nullptr) *err = request.error;
  return request.status;
}

dtrun_status Test(dtrun_request* request, std::int32_t* done, dtrun_error* err) {
  const std::lock_guard lock(request->comm->mutex);
  *done = request->done ? 1 : 0;
  return request->done ? Outcome(*request, err) : DTRUN_OK;
}

dtrun_status WaitHost(dtrun_request* request, std::int64_t timeout_ns, dtrun_error* err) {
  std::unique_lock lock(request->comm->mutex);
  const auto done = [&] { return request->done; };
  if (timeout_ns < 0) {
    request->comm->changed.wait(lock, done);
  } else if (!request->comm->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), done)) {
    return Fail(err, DTRUN_TIMEOUT, "still running");
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

dtrun_status Init(const dtrun_host* host, const dtrun_options*, dtrun_instance** out, dtrun_error* err) {
  kv_service = static_cast<const dtrun_kv_service*>(host->get_service(DTRUN_KV_SERVICE));
  memory_service = static_cast<const dtrun_memory_service*>(host->get_service(DTRUN_MEMORY_SERVICE));
  if (kv_service == nullptr || memory_service == nullptr) {
    return Fail(err, DTRUN_UNSUPPORTED, "the host lacks kv or memory");
  }
  static char instance;
  *out = reinterpret_cast<dtrun_instance*>(&instance);
  return DTRUN_OK;
}

void Shutdown(dtrun_instance*) {}

}  // namespace

dtrun_status dtrun_plugin_entry_v0(const dtrun_host*, const dtrun_plugin** out, dtrun_error*) {
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
