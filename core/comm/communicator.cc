#include "core/comm/communicator.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.h"
#include "core/base/error_id.h"
#include "core/base/text.h"
#include "core/comm/handle_memory.h"
#include "dtrun/plugin/names.hpp"

using dtrun::Error;
using dtrun::ErrorId;
using dtrun::Explained;
using dtrun::PluginError;
using dtrun::Result;
using dtrun::Status;
namespace comm = dtrun::comm;
namespace sdk = dtrun::sdk;

namespace {

using CommHandles = comm::HandleMemory<dtrun_comm, 64>;

constexpr dtrun_group_params kGroup{sizeof(dtrun_group_params), 0};

}  // namespace

dtrun_comm::dtrun_comm(comm::Making making)
    : state_(std::move(making),
             {[this](dtrun_work& work) {
                std::int32_t done = 0;
                if (TestOne(work, &done, nullptr) == DTRUN_OK) return done != 0;
                if (state_.making.timeout.count() >= 0) state_.watch.Remind(state_.making.timeout);
                return true;
              },
              [this](dtrun_work* work) { Forget(work); }, [this] { state_.TellUnheard(); }}) {}

Result<std::unique_ptr<dtrun_comm>> dtrun_comm::Create(comm::Making given) {
  std::unique_ptr<dtrun_comm> made(new dtrun_comm(std::move(given)));
  const comm::Making& making = made->making();
  Status ready = comm::Ask(making, made->state_.host);
  if (ready) {
    ready = comm::Open(making, making.kv, made->state_.host);
  } else {
    ready = comm::Refuse(making, making.kv, std::move(ready).error());
  }
  if (!ready) return std::move(ready).error();
  made->state_.StartRecording();
  return made;
}

void* dtrun_comm::operator new(std::size_t) { return CommHandles::New(); }
void dtrun_comm::operator delete(void* comm) { CommHandles::Delete(comm); }
bool dtrun_comm::IsHeld(const dtrun_comm* comm) { return CommHandles::IsHeld(comm); }

dtrun_comm::~dtrun_comm() {
  if (raw() == nullptr) return;
  EndWatch();
  state_.StopRecording();
  bool running = false;
  for (dtrun_work* work = works_; work != nullptr; work = work->next) {
    PluginError ignored;  // the program did not ask for its result either
    running = running || (work->request != nullptr && !work->succeeded &&
                          work->route->carrier.table.req_test(work->request, &ignored) == DTRUN_PENDING);
  }
  const char* const call = state_.making.name == "world" ? "finalize" : "free";
  if (group_.first != nullptr && !state_.failed()) {
    const std::string text = fmt::format("rank {} called {} inside a group on '{}'; call group_end first",
                                         state_.making.rank, call, state_.making.name);
    if (state_.making.warn) state_.making.warn(text);
    state_.Abort(text);
  } else if (running) {
    state_.Abort(fmt::format("rank {} called {} while an operation ran", state_.making.rank, call));
  }
  while (works_ != nullptr) {
    dtrun_work& work = *works_;
    if (work.request != nullptr) ReleaseRequest(*work.route, std::exchange(work.request, nullptr));
    work.comm = nullptr;
    Unlink(work);
    if (work.dropped) delete &work;
  }
  Delete(group_.first);  // a group that was never ended has no other owner
  devices_.DestroyStreams();
}

void dtrun_comm::EndWatch() {
  if (state_.device() == nullptr) return;
  if (!state_.failed()) state_.watch.AwaitDropped();
  state_.watch.End();
}

dtrun_status dtrun_comm::Abort(std::string_view reason, dtrun_error* err) {
  for (const comm::Route* route : state_.Routes()) {
    if (route == nullptr || route->CanAbort()) continue;
    return Error{DTRUN_UNSUPPORTED, fmt::format("backend '{}' cannot abort '{}'; end the process instead",
                                                route->carrier.name, state_.making.name)}
        .CopyTo(err);
  }
  constexpr std::size_t kMostOfAReason = 300;
  const std::string text =
      reason.empty() ? "no reason given" : dtrun::Shortened(dtrun::Printable(reason), kMostOfAReason);
  const Error aborted{DTRUN_ABORTED,
                      fmt::format("'{}' was aborted: {}", state_.making.name, text),
                      -1,
                      ErrorId::kAborted,
                      {},
                      {{"communicator", state_.making.name}, {"call", "abort"}, {"reason", text}}};
  // Told first, so that the others' failures, which may end them sooner, are known for consequences.
  if (state_.Remember(aborted) && state_.making.report) state_.making.report(aborted);
  state_.Abort(text);
  if (state_.making.aborted) state_.making.aborted(text);
  return DTRUN_OK;
}

void dtrun_comm::Misused(const char* call, const Error& error) {
  const std::string text = fmt::format("{}: {}", call, error.text);
  state_.Remember(Error{error.code, text});
  if (state_.making.warn) state_.making.warn(text);
}

dtrun_status dtrun_comm::GroupBegin(dtrun_error* err) {
  const std::lock_guard lock(state_.order);
  if (state_.failed()) return state_.FirstFailure(err);
  if (group_.open) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("group_begin: '{}' has a group open already; end it first", state_.making.name)}
        .CopyTo(err);
  }
  if (const Status begun = BeginGroupOf(state_.host); !begun) return begun.error().CopyTo(err);
  group_ = {true, std::this_thread::get_id(), nullptr, nullptr};
  group_.end = &group_.first;
  return DTRUN_OK;
}

Status dtrun_comm::BeginGroupOf(const comm::Route& route) {
  const auto begin = route.carrier.table.group_begin;
  if (begin == nullptr) return {};
  return state_.Call(
      route, [&](dtrun_error* e) { return begin(route.comm, &kGroup, e); }, "group on '{}'",
      state_.making.name);
}

Status dtrun_comm::JoinGroup(comm::Route& route, const dtrun_op& op, bool wants_work) {
  if (group_.owner != std::this_thread::get_id()) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("{}: another thread has a group open on '{}'; start it after its "
                             "group_end",
                             sdk::OperationName(op.kind), state_.making.name)};
  }
  if (wants_work) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("{}: inside a group work is NULL; group_end gives one for all",
                             sdk::OperationName(op.kind))};
  }
  if (!route.OfDevice() || group_.of_device) return {};
  group_.of_device = true;
  return BeginGroupOf(route);
}

dtrun_status dtrun_comm::GroupEnd(dtrun_work** out, dtrun_error* err) {
  std::unique_ptr<dtrun_work> empty = std::make_unique<dtrun_work>();
  dtrun_work* group = nullptr;
  Status ended;
  {
    const std::lock_guard lock(state_.order);
    if (!group_.open || group_.owner != std::this_thread::get_id()) {
      return Error{DTRUN_FAILED_PRECONDITION,
                   fmt::format("group_end: this thread has no group open on '{}'; group_begin "
                               "opens one",
                               state_.making.name)}
          .CopyTo(err);
    }
    for (const comm::Route* route : state_.Routes()) {
      const bool open = route != nullptr && (!route->OfDevice() || group_.of_device);
      if (!open || route->carrier.table.group_end == nullptr) continue;
      // End both, even if one fails: an open group would never start, and never end.
      Status own = state_.Call(
          *route, [&](dtrun_error* e) { return route->carrier.table.group_end(route->comm, &kGroup, e); },
          "group on '{}'", state_.making.name);
      if (ended) ended = std::move(own);
    }
    group = std::exchange(group_, {}).first;
    for (dtrun_work* one = group; one != nullptr; one = one->together) {
      if (one->request != nullptr && one->route->OfDevice()) state_.watch.Add(*one);
    }
    if (group == nullptr) {
      empty->comm = this;
      Link(*empty);
      group = empty.release();
    }
  }
  // Unlike a rejected single call, this leaves operations behind that may have started.
  if (!ended) state_.Record(ended.error());
  dtrun_status status = DTRUN_OK;
  if (state_.failed()) {
    status = state_.FirstFailure(err);
  } else if (out != nullptr) {
    *out = group;
    return DTRUN_OK;
  } else {
    status = WaitForHosts(*group, err);
  }
  if (status != DTRUN_OK) state_.Abort("an operation of a group failed");
  Release(group);
  return status;
}

// A call that has ended in enqueue is noted here, one with a handle when its end is seen, a blocking one
// after its wait.
void dtrun_comm::TraceStarted(const dtrun_op& op, dtrun_status status, std::int64_t began, std::int64_t given,
                              dtrun_work* work, bool runs, bool on_stream) {
  const std::uint32_t thread = state_.making.trace->Thread();
  if (status != DTRUN_OK || !runs)
    return state_.Trace(op, began, given, comm::Now(), thread,
                        status == DTRUN_OK ? 0 : dtrun::contract::kTraceFailed);
  if (work == nullptr) return;
  work->began = began;
  work->given = given;
  work->thread = thread;
  work->traced =
      on_stream ? dtrun::contract::kTraceAsync | dtrun::contract::kTraceDevice : dtrun::contract::kTraceAsync;
}

void dtrun_comm::TraceEnded(dtrun_work& work, std::uint16_t flags) {
  if (const std::int64_t began = std::exchange(work.began, 0); began != 0)
    state_.Trace(work.op, began, work.given, comm::Now(), work.thread,
                 static_cast<std::uint16_t>(work.traced | flags));
}
