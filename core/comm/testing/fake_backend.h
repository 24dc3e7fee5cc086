// A backend with answers that the test sets: for the communicator's own tests.
//
// Requests complete when the test completes them. One at a time per process; any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/abi/backend.h"
#include "dtrun/abi/device.h"

namespace dtrun::comm::testing {

struct FakeRequest {
  bool done = false;
  dtrun_status status = DTRUN_OK;
  std::string text;
  int peer = -1;
};

// The calls that the backend received, and its answers.
struct Fake {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<dtrun_op> ops;
  std::vector<FakeRequest*> requests;
  int released = 0, aborts = 0, destroyed = 0, group_begins = 0, group_ends = 0;
  std::string abort_reason;   // of the last one
  std::vector<void*> memory;  // given out by mem_alloc
  std::vector<std::pair<void*, dtrun_mem_params>> registered;
  dtrun_status group_status = DTRUN_OK;      // of group_begin and group_end
  std::vector<std::int64_t> waits;           // times given to req_wait_host
  int early_returns = 0;                     // of req_wait_host, still to come
  std::vector<std::pair<int, int>> created;  // rank and size of every comm_create
  std::vector<std::string> names;            // of every comm_create
  std::vector<int> host_counts;              // of every comm_create
  bool complete_at_once = true;
  dtrun_status enqueue_status = DTRUN_OK;
  dtrun_status create_status = DTRUN_OK;
  std::string text = "the fake says no";
  int peer = -1;
  dtrun_backend_caps caps{};

  Fake() {
    caps.features = DTRUN_CAP_ABORT;
    caps.ops = caps.dtypes = caps.reduce_dtypes = caps.reduces = ~std::uint64_t{0};
    caps.device_kinds = 1u << DTRUN_DEVICE_HOST;
    current = this;
  }
  ~Fake() { current = nullptr; }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;

  void Complete(std::size_t index, dtrun_status status = DTRUN_OK, std::string why = {}, int who = -1) {
    const std::lock_guard lock(mutex);
    *requests.at(index) = {true, status, std::move(why), who};
    changed.notify_all();
  }

  static dtrun_backend Table() {
    dtrun_backend t;
    DTRUN_INIT(t);
    t.query_caps = [](dtrun_instance*, dtrun_backend_caps* out, dtrun_error*) -> dtrun_status {
      const std::uint32_t size = out->struct_size;
      *out = current->caps;
      out->struct_size = size;
      return DTRUN_OK;
    };
    t.comm_create = [](dtrun_instance*, const dtrun_comm_params* params, dtrun_backend_comm** out,
                       dtrun_error* err) -> dtrun_status {
      if (current->create_status != DTRUN_OK) {
        return Say(err, current->create_status, current->text, current->peer);
      }
      current->created.emplace_back(params->rank, params->size);
      current->names.emplace_back(params->name.data, params->name.size);
      current->host_counts.push_back(params->host_count);
      *out = reinterpret_cast<dtrun_backend_comm*>(current);
      return DTRUN_OK;
    };
    t.comm_destroy = [](dtrun_backend_comm*) { ++current->destroyed; };
    t.comm_abort = [](dtrun_backend_comm*, const dtrun_abort_params* params, dtrun_error*) -> dtrun_status {
      const std::lock_guard lock(current->mutex);
      ++current->aborts;
      current->abort_reason.assign(params->reason.data, params->reason.size);
      for (FakeRequest* request : current->requests) {
        if (!request->done) *request = {true, DTRUN_ABORTED, "aborted", -1};
      }
      current->changed.notify_all();
      return DTRUN_OK;
    };
    t.enqueue = Enqueue;
    t.req_test = [](dtrun_request* request, dtrun_error* err) -> dtrun_status {
      const std::lock_guard lock(current->mutex);
      const FakeRequest& r = Of(request);
      return r.done ? Say(err, r.status, r.text, r.peer) : DTRUN_PENDING;
    };
    t.req_wait_host = [](dtrun_request* request, std::int64_t timeout_ns, dtrun_error* err) -> dtrun_status {
      std::unique_lock lock(current->mutex);
      const FakeRequest& r = Of(request);
      current->waits.push_back(timeout_ns);
      if (current->early_returns > 0 && current->early_returns-- > 0) return DTRUN_PENDING;
      const auto done = [&] { return r.done; };
      if (timeout_ns < 0) {
        current->changed.wait(lock, done);
      } else if (!current->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), done)) {
        return DTRUN_PENDING;
      }
      return Say(err, r.status, r.text, r.peer);
    };
    t.req_release = [](dtrun_request* request) {
      std::unique_lock lock(current->mutex);
      current->changed.wait(lock, [&] { return Of(request).done; });
      ++current->released;
      std::erase(current->requests, &Of(request));
      delete &Of(request);
    };
    return t;
  }
  // The same with the optional members.
  static dtrun_backend FullTable() {
    dtrun_backend t = Table();
    t.group_begin = [](dtrun_backend_comm*, const dtrun_group_params*, dtrun_error* err) -> dtrun_status {
      ++current->group_begins;
      return Say(err, current->group_status, current->text, current->peer);
    };
    t.group_end = [](dtrun_backend_comm*, const dtrun_group_params*, dtrun_error* err) -> dtrun_status {
      ++current->group_ends;
      return Say(err, current->group_status, current->text, current->peer);
    };
    t.mem_alloc = [](dtrun_backend_comm*, const dtrun_mem_params* params, void** out,
                     dtrun_error* err) -> dtrun_status {
      if (current->enqueue_status != DTRUN_OK) return Say(err, current->enqueue_status, current->text, -1);
      *out = current->memory.emplace_back(::operator new(params->bytes, std::align_val_t(64)));
      std::memset(*out, 0, params->bytes);
      return DTRUN_OK;
    };
    t.mem_free = [](dtrun_backend_comm*, void* block) {
      if (std::erase(current->memory, block) == 1) ::operator delete(block, std::align_val_t(64));
    };
    t.mem_register = [](dtrun_backend_comm*, const dtrun_mem_params* params, void* block,
                        dtrun_error* err) -> dtrun_status {
      if (current->enqueue_status != DTRUN_OK) return Say(err, current->enqueue_status, current->text, -1);
      current->registered.emplace_back(block, *params);
      return DTRUN_OK;
    };
    t.mem_deregister = [](dtrun_backend_comm*, void* block) {
      std::erase_if(current->registered, [&](const auto& one) { return one.first == block; });
    };
    return t;
  }

 private:
  static FakeRequest& Of(dtrun_request* request) { return *reinterpret_cast<FakeRequest*>(request); }
  static dtrun_status Say(dtrun_error* err, dtrun_status status, const std::string& text, int peer) {
    if (status == DTRUN_OK || err == nullptr) return status;
    err->code = status;
    err->peer = peer;
    err->vendor_code = 99;
    std::strcpy(err->vendor_domain, "fake");
    std::strcpy(err->message, text.c_str());
    return status;
  }
  static dtrun_status Enqueue(dtrun_backend_comm*, const dtrun_op* op, const dtrun_stream*,
                              dtrun_request** out, dtrun_error* err) {
    const std::lock_guard lock(current->mutex);
    current->ops.push_back(*op);
    if (current->enqueue_status != DTRUN_OK) {
      return Say(err, current->enqueue_status, current->text, current->peer);
    }
    if ((op->flags & DTRUN_OP_DETACHED) != 0) return DTRUN_OK;
    auto* request = new FakeRequest{current->complete_at_once, DTRUN_OK, "", -1};
    current->requests.push_back(request);
    *out = reinterpret_cast<dtrun_request*>(request);
    return DTRUN_PENDING;
  }

  static inline Fake* current = nullptr;
};

}  // namespace dtrun::comm::testing
