#include "core/comm/communicator.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

using dtrun::Error;
using dtrun::Result;
using dtrun::Status;
namespace comm = dtrun::comm;

namespace {

dtrun_error NoError() {
  dtrun_error error;
  DTRUN_INIT(error);
  return error;
}

// A plugin's failure with what was tried in front. The status wins over the code inside.
Error Explained(dtrun_status status, dtrun_error cause, std::string_view context) {
  cause.code = status;
  return Error::From(cause, context);
}

bool CanAbort(const dtrun_backend& table, const dtrun_backend_caps& caps) {
  return table.comm_abort != nullptr && (caps.flags & DTRUN_CAP_ABORT) != 0;
}

// The caller's mistakes leave the communicator usable: nothing was started.
bool IsRefusal(dtrun_status status) {
  return status == DTRUN_INVALID_ARGUMENT || status == DTRUN_UNSUPPORTED;
}

}  // namespace

Result<std::unique_ptr<dtrun_comm>> dtrun_comm::Create(comm::Making making) {
  std::unique_ptr<dtrun_comm> made(new dtrun_comm(std::move(making)));
  const comm::Making& m = made->making_;
  made->scope_.comm = m.name;
  made->scope_.backend = m.backend_name;
  made->scope_.rank = m.rank;
  made->scope_.size = m.size;

  dtrun_backend_caps& caps = made->scope_.caps;
  DTRUN_INIT(caps);
  dtrun_error error = NoError();
  if (const dtrun_status status = m.backend.query_caps(m.instance, &caps, &error); status != DTRUN_OK) {
    return Explained(status, error, fmt::format("what backend '{}' can do", m.backend_name));
  }

  dtrun_comm_params params;
  DTRUN_INIT(params);
  params.rank = m.rank;
  params.size = m.size;
  params.host_count = m.host_count;
  params.generation = m.generation;
  params.name = {m.name.c_str(), m.name.size()};
  params.kv = m.kv;
  params.timeout_ns = m.timeout.count();
  error = NoError();
  if (const dtrun_status status = m.backend.comm_create(m.instance, &params, &made->comm_, &error);
      status != DTRUN_OK) {
    made->comm_ = nullptr;
    return Explained(status, error,
                     fmt::format("rank {} meeting the {} ranks of '{}' over backend '{}'", m.rank, m.size,
                                 m.name, m.backend_name));
  }
  return made;
}

dtrun_comm::~dtrun_comm() {
  if (comm_ == nullptr) return;
  const dtrun_backend& table = making_.backend;
  bool running = false;
  for (dtrun_work* work = works_; work != nullptr; work = work->next) {
    std::int32_t done = 1;
    dtrun_error ignored = NoError();  // whoever started it did not ask either
    if (work->request != nullptr && !work->succeeded) (void)table.req_test(work->request, &done, &ignored);
    running = running || done == 0;
  }
  if (running && CanAbort(table, scope_.caps)) {
    constexpr std::string_view kReason = "dtrun_finalize";
    table.comm_abort(comm_, {kReason.data(), kReason.size()});
  }
  while (works_ != nullptr) {
    dtrun_work& work = *works_;
    if (work.request != nullptr) table.req_release(std::exchange(work.request, nullptr));
    work.comm = nullptr;
    Unlink(work);
  }
  table.comm_destroy(comm_);
}

dtrun_status dtrun_comm::Start(dtrun_op& op, dtrun_work** out, dtrun_error* err) {
  if (Status valid = comm::Check(op, scope_); !valid) return valid.error().CopyTo(err);
  std::unique_ptr<dtrun_work> work;
  if (out != nullptr) work = std::make_unique<dtrun_work>();

  const dtrun_backend& table = making_.backend;
  const bool collective = comm::IsCollective(op.kind);
  op.timeout_ns = making_.timeout.count();
  dtrun_request* request = nullptr;
  dtrun_error cause = NoError();
  dtrun_status status = DTRUN_OK;
  {
    const std::lock_guard lock(enqueue_mutex_);
    if (failed_.load(std::memory_order_acquire)) return FirstFailure(err);
    op.sequence = collective ? sequence_ + 1 : 0;
    // Without elements there is nothing to move, on any rank; the call is only counted.
    if (op.count > 0 || op.kind == DTRUN_BARRIER) {
      status = table.enqueue(comm_, &op, nullptr, &request, &cause);
    }
    if (status == DTRUN_OK && collective) ++sequence_;
    if (status == DTRUN_OK && work != nullptr) {
      work->comm = this;
      work->request = request;
      work->op = op;
      Link(*work);
    }
  }
  if (status != DTRUN_OK) return Fail(op, status, cause, err);
  if (work != nullptr) {
    *out = work.release();
    return DTRUN_OK;
  }
  if (request == nullptr) return DTRUN_OK;
  status = table.req_wait_host(request, -1, &cause);
  table.req_release(request);
  return status == DTRUN_OK ? DTRUN_OK : Fail(op, status, cause, err);
}

dtrun_status dtrun_comm::Test(dtrun_work& work, std::int32_t* done, dtrun_error* err) {
  if (work.request == nullptr || work.succeeded) {
    *done = 1;
    return DTRUN_OK;
  }
  std::int32_t finished = 0;
  dtrun_error cause = NoError();
  const dtrun_status status = making_.backend.req_test(work.request, &finished, &cause);
  if (status != DTRUN_OK) {
    *done = 1;
    return Fail(work.op, status, cause, err);
  }
  if (finished != 0) work.succeeded = true;
  *done = finished;
  return DTRUN_OK;
}

dtrun_status dtrun_comm::Wait(dtrun_work& work, std::int64_t timeout_ns, dtrun_error* err) {
  if (work.request == nullptr || work.succeeded) return DTRUN_OK;
  dtrun_error cause = NoError();
  const dtrun_status status = making_.backend.req_wait_host(work.request, timeout_ns, &cause);
  if (status == DTRUN_OK) {
    work.succeeded = true;
    return DTRUN_OK;
  }
  if (status == DTRUN_TIMEOUT && timeout_ns >= 0) {
    // The caller's time is up, or the operation's own: only the latter ends it.
    std::int32_t done = 0;
    const dtrun_status now = Test(work, &done, err);
    if (done != 0) return now;
    return Error{DTRUN_TIMEOUT,
                 fmt::format("{}: still running after {}; wait again, or abort the communicator",
                             comm::Describe(work.op, making_.name),
                             dtrun::FormatDuration(dtrun::Nanoseconds(timeout_ns)))}
        .CopyTo(err);
  }
  return Fail(work.op, status, cause, err);
}

void dtrun_comm::Release(dtrun_work* work) {
  if (work->request != nullptr) making_.backend.req_release(work->request);
  {
    const std::lock_guard lock(enqueue_mutex_);
    Unlink(*work);
  }
  delete work;
}

dtrun_status dtrun_comm::Abort(std::string_view reason, dtrun_error* err) {
  if (!CanAbort(making_.backend, scope_.caps)) {
    return Error{DTRUN_UNSUPPORTED, fmt::format("backend '{}' cannot abort '{}'; end the process instead",
                                                making_.backend_name, making_.name)}
        .CopyTo(err);
  }
  const std::string text(reason.empty() ? "no reason given" : reason);
  Remember(Error{DTRUN_ABORTED, fmt::format("'{}' was aborted: {}", making_.name, text)}, NoError());
  making_.backend.comm_abort(comm_, {text.c_str(), text.size()});
  if (making_.aborted) making_.aborted(text);
  return DTRUN_OK;
}

dtrun_status dtrun_comm::Fail(const dtrun_op& op, dtrun_status status, const dtrun_error& cause,
                              dtrun_error* err) {
  const Error error = Explained(status, cause, comm::Describe(op, making_.name));
  if (IsRefusal(status)) return error.CopyTo(err);
  const bool first = Remember(error, cause);
  if (first && making_.report && (status == DTRUN_REMOTE_FAILURE || status == DTRUN_TIMEOUT)) {
    making_.report(error.peer, error.text);
  }
  return FirstFailure(err);
}

bool dtrun_comm::Remember(const Error& error, const dtrun_error& cause) {
  const std::lock_guard lock(failure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return false;
  failure_ = NoError();
  error.CopyTo(&failure_);
  failure_.vendor_code = cause.vendor_code;
  std::memcpy(failure_.vendor_domain, cause.vendor_domain, sizeof failure_.vendor_domain);
  failed_.store(true, std::memory_order_release);
  return true;
}

dtrun_status dtrun_comm::FirstFailure(dtrun_error* err) {
  if (err != nullptr && err->struct_size >= sizeof failure_) {
    const std::uint32_t size = err->struct_size;
    *err = failure_;
    err->struct_size = size;
  }
  return failure_.code;
}

void dtrun_comm::Link(dtrun_work& work) {
  work.next = works_;
  work.link = &works_;
  if (works_ != nullptr) works_->link = &work.next;
  works_ = &work;
}

void dtrun_comm::Unlink(dtrun_work& work) {
  *work.link = work.next;
  if (work.next != nullptr) work.next->link = work.link;
}
