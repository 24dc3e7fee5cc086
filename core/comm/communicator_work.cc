// Starts operations and waits for their end.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/error_id.h"
#include "core/base/rough_clock.h"
#include "core/comm/communicator.h"

using dtrun::Error;
using dtrun::PluginError;
using dtrun::Status;
using dtrun::comm::OperationCall;
namespace comm = dtrun::comm;
using dtrun::contract::kTraceFailed, dtrun::contract::kTraceUnseen;
namespace sdk = dtrun::sdk;

namespace {

using dtrun::RoughNow;
using dtrun::comm::Now;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Before a backend that has returned from a wait too early is asked again.
constexpr std::chrono::milliseconds kAfterEarlyReturn{1};

std::int64_t Add(std::int64_t a, std::int64_t b) { return a > kNever - b ? kNever : a + b; }

}  // namespace

dtrun_status dtrun_comm::StartOn(comm::Route& route, dtrun_op& op, const dtrun_stream* stream,
                                 dtrun_work** out, dtrun_error* err) {
  const comm::Scope& scope = route.scope;
  if (op.timeout_ns == 0) op.timeout_ns = state_.making.timeout.count();
  op.timeout_ns = std::max<std::int64_t>(op.timeout_ns, -1);
  // For query_support and the wait too.
  const OperationCall call(route.carrier.name, state_.making.report, Limit(op.timeout_ns));
  if (Status valid = comm::Check(op, scope); !valid) return valid.error().CopyTo(err);
  if (sdk::IsRooted(op.kind)) comm::ClearUnused(op, scope);
  bool captured = false;
  // The owner of memory can be queried once devices are in use.
  if (state_.device() != nullptr) [[unlikely]] {
    const dtrun::Result<bool> prepared = devices_.Prepare(route, op, stream, out != nullptr);
    if (!prepared) return prepared.error().CopyTo(err);
    captured = *prepared;
  }
  const std::int64_t began = state_.traces() ? Now() : 0;
  std::int64_t given = 0;
  std::unique_ptr<dtrun_work> work;
  if (out != nullptr || (stream != nullptr && !captured)) work = std::make_unique<dtrun_work>();

  dtrun_request* request = nullptr;
  PluginError cause;
  dtrun_status status = DTRUN_OK;
  bool grouped = false;
  {
    const std::lock_guard lock(state_.order);
    if (state_.failed()) return state_.FirstFailure(err);
    grouped = group_.open;
    if (grouped) {
      if (Status joined = JoinGroup(route, op, out != nullptr); !joined) return joined.error().CopyTo(err);
      if (work == nullptr) work = std::make_unique<dtrun_work>();
    }
    op.flags = captured ? DTRUN_OP_DETACHED : work == nullptr ? DTRUN_OP_BLOCKING : 0;
    if (began != 0) [[unlikely]]
      given = Now();
    status = Enqueue(route, op, stream, work, &request, &cause);
    if (began != 0) [[unlikely]]
      TraceStarted(op, status, began, given, work.get(), request != nullptr, stream != nullptr);
    if (status == DTRUN_OK && grouped) {
      *group_.end = work.get();
      group_.end = &work.release()->together;
    } else if (stream != nullptr && status == DTRUN_OK && request != nullptr) [[unlikely]] {
      work->dropped = out == nullptr && !route.carrier.orders_on_host;
      state_.watch.Add(*work);
      if (work->dropped) static_cast<void>(work.release());
    }
  }
  if (status != DTRUN_OK) return state_.Fail(op, status, cause, err);
  if (stream != nullptr && work != nullptr && out == nullptr) [[unlikely]] {
    if (request != nullptr) {  // without the lock: another thread's call may have to go first
      status = WaitOnStream(*work, *stream, err);
      Release(work.release());
      return status;
    }
    Forget(work.release());  // it had nothing to do, or is done
  }
  if (grouped || request == nullptr || out != nullptr || stream != nullptr) {
    if (out != nullptr) *out = work.release();
    return DTRUN_OK;
  }
  status = WaitBlocking(op, request, cause, err);
  state_.NoteMessageEnd(op);
  if (began != 0) [[unlikely]]
    state_.Trace(op, began, given, Now(), state_.making.trace->Thread(),
                 status == DTRUN_OK ? 0 : kTraceFailed);
  return status;
}

std::int64_t dtrun_comm::Limit(std::int64_t timeout_ns) const {
  return timeout_ns < 0 ? 0 : Add(timeout_ns, state_.making.patience.count());
}

dtrun_status dtrun_comm::Enqueue(comm::Route& route, dtrun_op& op, const dtrun_stream* stream,
                                 std::unique_ptr<dtrun_work>& work, dtrun_request** request,
                                 dtrun_error* cause) {
  const bool collective = sdk::IsCollective(op.kind);
  op.sequence = collective ? state_.sequence + 1 : 0;
  op.count = comm::Elements(op, route.scope);
  std::optional<dtrun::contract::MessageLog> before;
  if (collective && state_.records()) {
    sdk::Signature signature = sdk::SignatureOf(op, state_.making.size);
    signature.device_kind = static_cast<std::uint8_t>(route.device_kind);
    state_.Begin(op.sequence, signature);
  } else if (!collective && route.OfDevice()) {
    before = state_.NoteMessage(route, op);  // enqueue may connect to the peer, and wait for it
  }
  // Without elements there is nothing to move on any rank; the call is only counted.
  if (comm::Moves(op, route.scope)) {
    const dtrun_status status = state_.Answer(
        route, cause, [&] { return route.carrier.table.enqueue(route.comm, &op, stream, request, cause); });
    if (status == DTRUN_OK) {
      *request = nullptr;  // it has completed, whatever the plugin left there
      state_.NoteEnd(op);
    } else if (status == DTRUN_PENDING && *request == nullptr) {
      return comm::OperationBrokeRule(route.carrier.name, "returned DTRUN_PENDING and gave no request",
                                      state_.making.report, cause);
    } else if (status != DTRUN_PENDING) {
      if (before) state_.TakeBack(*before);
      return status;
    } else if ((op.flags & DTRUN_OP_DETACHED) != 0) {
      return comm::OperationBrokeRule(route.carrier.name, "made a request for a detached operation",
                                      state_.making.report, cause);
    }
  }
  if (collective) ++state_.sequence;
  if (!collective && !route.OfDevice())
    static_cast<void>(state_.NoteMessage(route, op));  // the message is in flight
  if (*request == nullptr) state_.NoteMessageEnd(op);
  if (work == nullptr) return DTRUN_OK;
  work->over = *request == nullptr;
  work->comm = this;
  work->route = &route;
  work->request = *request;
  work->op = op;
  if (stream != nullptr) work->stream = *stream;
  work->op.send_counts = work->op.send_offsets = work->op.recv_counts = work->op.recv_offsets = nullptr;
  work->deadline = op.timeout_ns < 0 ? kNever : Add(Now(), Limit(op.timeout_ns));
  Link(*work);
  return DTRUN_OK;
}

dtrun_status dtrun_comm::WaitBlocking(const dtrun_op& op, dtrun_request* request, dtrun_error& cause,
                                      dtrun_error* err) {
  const std::int64_t budget = op.timeout_ns < 0 ? -1 : Add(op.timeout_ns, state_.making.patience.count());
  const std::int64_t began = RoughNow();
  std::int64_t left = budget;
  dtrun_status status = DTRUN_PENDING;
  const auto wait = [&] { return state_.host.carrier.table.req_wait_host(request, left, &cause); };
  while ((status = state_.Answer(state_.host, &cause, wait)) == DTRUN_PENDING) {
    const std::int64_t passed = Now() - began;
    if (budget >= 0 && passed >= budget) {  // the backend missed the deadline
      const dtrun_status overrun = Overrun(state_.host, op, err);
      ReleaseRequest(state_.host, request);
      return overrun;
    }
    std::this_thread::sleep_for(kAfterEarlyReturn);
    if (budget >= 0) left = budget - passed;
  }
  ReleaseRequest(state_.host, request);
  if (status != DTRUN_OK) return state_.Fail(op, status, cause, err);
  state_.NoteEnd(op);
  return DTRUN_OK;
}

dtrun_status dtrun_comm::Test(dtrun_work& work, std::int32_t* done, dtrun_error* err) {
  for (dtrun_work* one = &work; one != nullptr; one = one->together) {
    std::int32_t finished = 0;
    const dtrun_status status = TestOne(*one, &finished, err);
    if (status != DTRUN_OK || finished == 0) {
      *done = finished;
      return status;
    }
  }
  *done = 1;
  return DTRUN_OK;
}

dtrun_status dtrun_comm::TestOne(dtrun_work& work, std::int32_t* done, dtrun_error* err) {
  *done = 1;
  if (work.request == nullptr || work.succeeded) return DTRUN_OK;
  PluginError cause;
  const OperationCall call = state_.Enter(*work.route);
  const dtrun_status status = state_.Answer(
      *work.route, &cause, [&] { return work.route->carrier.table.req_test(work.request, &cause); });
  if (work.began != 0 && status != DTRUN_PENDING) [[unlikely]]
    TraceEnded(work, status == DTRUN_OK ? 0 : kTraceFailed);
  if (status != DTRUN_PENDING) return Concluded(work, status, cause, err);
  if (work.deadline != kNever && Now() >= work.deadline) return Overrun(*work.route, work.op, err);
  state_.NoteAsked();
  *done = 0;
  return DTRUN_OK;
}

dtrun_status dtrun_comm::Wait(dtrun_work& work, std::int64_t timeout_ns, dtrun_error* err) {
  const std::int64_t until = timeout_ns < 0 ? kNever : Add(Now(), timeout_ns);
  for (dtrun_work* one = &work; one != nullptr; one = one->together) {
    const std::int64_t left = timeout_ns < 0 ? -1 : std::max<std::int64_t>(0, until - Now());
    const dtrun_status status = WaitOne(*one, left, err);
    if (status == DTRUN_PENDING) {
      return Error{DTRUN_PENDING,
                   fmt::format("{}: still running after {}; wait again, or abort the communicator",
                               comm::Describe(one->op, state_.making.name),
                               dtrun::FormatDuration(dtrun::Nanoseconds(timeout_ns)))}
          .CopyTo(err);
    }
    if (status != DTRUN_OK) return status;
  }
  return DTRUN_OK;
}

// DTRUN_PENDING if the caller's time is up but the operation's is not.
dtrun_status dtrun_comm::WaitOne(dtrun_work& work, std::int64_t timeout_ns, dtrun_error* err) {
  if (work.request == nullptr || work.succeeded) return DTRUN_OK;
  const std::int64_t given = timeout_ns < 0 ? kNever : Add(Now(), timeout_ns);
  const std::int64_t until = std::min(given, work.deadline);
  const std::int64_t began = state_.traces() ? Now() : 0;
  for (;;) {
    const std::int64_t budget = until == kNever ? -1 : std::max<std::int64_t>(0, until - Now());
    PluginError cause;
    dtrun_status status = DTRUN_OK;
    {
      const OperationCall call(work.route->carrier.name, state_.making.report, Limit(budget));
      status = state_.Answer(*work.route, &cause, [&] {
        return work.route->carrier.table.req_wait_host(work.request, budget, &cause);
      });
    }
    if (began != 0 && status != DTRUN_PENDING) [[unlikely]] {
      state_.TraceWait(work.op, began, Now());
      TraceEnded(work, status == DTRUN_OK ? 0 : kTraceFailed);
    }
    if (status != DTRUN_PENDING) return Concluded(work, status, cause, err);
    state_.NoteAsked();
    const std::int64_t now = Now();
    if (work.deadline != kNever && now >= work.deadline) return Overrun(*work.route, work.op, err);
    if (given != kNever && now >= given) return DTRUN_PENDING;
    std::this_thread::sleep_for(kAfterEarlyReturn);
  }
}

dtrun_status dtrun_comm::Overrun(const comm::Route& route, const dtrun_op& op, dtrun_error* err) {
  const bool aborts = route.CanAbort();
  const Error error{
      DTRUN_TIMEOUT,
      fmt::format("{}: backend '{}' has not ended it {} after its timeout of {}; {}",
                  comm::Describe(op, state_.making.name), route.carrier.name,
                  dtrun::FormatDuration(state_.making.patience),
                  dtrun::FormatDuration(dtrun::Nanoseconds(op.timeout_ns)),
                  aborts ? "the communicator was aborted" : "it cannot abort, so end the process"),
      -1,
      dtrun::ErrorId::kOverrun,
      {},
      {{"plugin", fmt::format("backend '{}'", route.carrier.name)}}};
  state_.Record(error);
  state_.Abort(error.text);
  if (!aborts && !state_.stuck.exchange(true) && state_.making.stuck) state_.making.stuck();
  return state_.FirstFailure(err);
}

void dtrun_comm::ReleaseRequest(const comm::Route& route, dtrun_request* request) {
  const dtrun_backend& table = route.carrier.table;
  const OperationCall call = state_.Enter(route);
  if (state_.stuck) {
    PluginError ignored;
    if (table.req_test(request, &ignored) == DTRUN_PENDING) return;
  }
  comm::Guard(route.carrier.name, "in its req_release", state_.making.report,
              [&] { table.req_release(request); });
}

void dtrun_comm::Release(dtrun_work* work) {
  while (work != nullptr) {
    dtrun_work* const one = std::exchange(work, work->together);
    if (one->route != nullptr && one->route->OfDevice()) {
      if (one->ordered && state_.watch.Drop(*one)) continue;
      state_.watch.Remove(*one);
    }
    Forget(one);
  }
}

dtrun_status dtrun_comm::Concluded(dtrun_work& work, dtrun_status status, const dtrun_error& cause,
                                   dtrun_error* err) {
  EndMessage(work);
  if (status != DTRUN_OK) return state_.Fail(work.op, status, cause, err);
  work.succeeded = true;
  state_.NoteEnd(work.op);
  return DTRUN_OK;
}

void dtrun_comm::Forget(dtrun_work* work) {
  if (work->began != 0) [[unlikely]]
    TraceEnded(*work, kTraceUnseen);
  EndMessage(*work);
  if (work->request != nullptr) ReleaseRequest(*work->route, work->request);
  if (work->link != nullptr) {
    const std::lock_guard lock(state_.order);
    Unlink(*work);
  }
  delete work;
}

void dtrun_comm::Delete(dtrun_work* work) {
  while (work != nullptr) delete std::exchange(work, work->together);
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

dtrun_status dtrun_comm::StartOnStream(dtrun_op& op, const dtrun_stream& stream, dtrun_work** out,
                                       dtrun_error* err) {
  const auto route = devices_.RouteFor(stream.device_kind, stream.device_index, "the stream is of", &op);
  if (!route) return route.error().CopyTo(err);
  ClearUnused(op);
  return StartOn(**route, op, &stream, out, err);
}

dtrun_status dtrun_comm::WaitOnStream(dtrun_work& work, const dtrun_stream& stream, dtrun_error* err) {
  for (dtrun_work* one = &work; one != nullptr; one = one->together) {
    if (const dtrun_status status = OrderBefore(stream, *one, err); status != DTRUN_OK) return status;
  }
  return DTRUN_OK;
}

dtrun_status dtrun_comm::OrderBefore(const dtrun_stream& stream, dtrun_work& work, dtrun_error* err) {
  if (work.route == nullptr) return DTRUN_OK;
  const comm::Route& route = *work.route;
  if (!route.OfDevice()) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("work_wait_on: {} moves host memory, which no stream waits for; use "
                             "work_wait",
                             comm::Describe(work.op, state_.making.name))}
        .CopyTo(err);
  }
  if (work.request == nullptr) return DTRUN_OK;
  const auto same =
      devices_.RouteFor(stream.device_kind, stream.device_index, "work_wait_on: the stream is of", nullptr);
  if (!same) return same.error().CopyTo(err);
  if (route.carrier.table.req_wait_stream != nullptr) {
    PluginError cause;
    const OperationCall call = state_.Enter(route);
    std::unique_lock lock(state_.order, std::defer_lock);
    if (!route.carrier.orders_on_host) lock.lock();  // [comm-serial]
    const dtrun_status status = state_.Answer(
        route, &cause, [&] { return route.carrier.table.req_wait_stream(work.request, &stream, &cause); });
    if (lock) lock.unlock();
    if (status != DTRUN_OK) return state_.Fail(work.op, status, cause, err);
  }
  work.ordered = true;
  return DTRUN_OK;
}

dtrun_status dtrun_comm::WaitForHosts(dtrun_work& group, dtrun_error* err) {
  for (dtrun_work* one = &group; one != nullptr; one = one->together) {
    if (one->route != nullptr && one->route->OfDevice()) {
      if (one->route->carrier.orders_on_host) {
        if (const dtrun_status status = OrderBefore(one->stream, *one, err); status != DTRUN_OK)
          return status;
      }
      one->ordered = true;  // its own stream sees it
      continue;
    }
    if (const dtrun_status status = WaitOne(*one, -1, err); status != DTRUN_OK) return status;
  }
  return DTRUN_OK;
}
