#include "core/comm/communicator.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/base/error_id.h"
#include "core/base/plugin_error.h"
#include "core/base/printable.h"

using dtrun::Error;
using dtrun::ErrorId;
using dtrun::Explained;
using dtrun::Nanoseconds;
using dtrun::PluginError;
using dtrun::Result;
using dtrun::Status;
namespace comm = dtrun::comm;
namespace sdk = dtrun::sdk;

namespace {

// A rank that knows why the calls fail stays this long, so that the others can read its calls.
constexpr std::chrono::milliseconds kOthersLook{200};

// Mistakes of the caller leave the communicator usable: nothing was started.
bool IsRefusal(dtrun_status status) {
  return status == DTRUN_INVALID_ARGUMENT || status == DTRUN_UNSUPPORTED;
}

}  // namespace

dtrun_comm::dtrun_comm(comm::Making making)
    : making_(std::move(making)),
      watch_({[this](dtrun_work& work) {
                std::int32_t done = 0;
                if (TestOne(work, &done, nullptr) == DTRUN_OK) return done != 0;
                if (making_.timeout.count() >= 0) watch_.Remind(making_.timeout);
                return true;
              },
              [this](dtrun_work* work) { Forget(work); }, [this] { TellUnheard(); }}) {
  host_.carrier = {making_.backend, making_.instance, making_.backend_name};
}

Result<std::unique_ptr<dtrun_comm>> dtrun_comm::Create(comm::Making making) {
  std::unique_ptr<dtrun_comm> made(new dtrun_comm(std::move(making)));
  Status ready = comm::Ask(made->making_, made->host_);
  if (ready) {
    ready = comm::Open(made->making_, made->making_.kv, made->host_);
  } else {
    ready = comm::Refuse(made->making_, made->making_.kv, std::move(ready).error());
  }
  if (!ready) return std::move(ready).error();
  made->StartRecording();
  return made;
}

void dtrun_comm::StartRecording() {
  if (making_.recorder == nullptr || making_.size == 1) return;
  ring_ = making_.recorder->Claim(making_.name, making_.rank, making_.size);
  making_.recorder->Watch(this, making_.name,
                          {[this](const Error& error) { Remember(error); },
                           [this](const Error& error) { AbortBackend(error.text); }});
}

void dtrun_comm::AddFacts(const dtrun_op& op, Error& error) const {
  const bool collective = sdk::IsCollective(op.kind);
  switch (error.code) {
    case DTRUN_TIMEOUT: error.id = ErrorId::kTimeout; break;
    case DTRUN_REMOTE_FAILURE: error.id = ErrorId::kPeerFailed; break;
    case DTRUN_MISMATCH: error.id = ErrorId::kCallsDiffer; break;
    case DTRUN_ABORTED: error.id = ErrorId::kAborted; break;
    default: return;
  }
  error.args["communicator"] = making_.name;
  error.args["call"] = collective              ? sdk::OperationName(op.kind)
                       : op.kind == DTRUN_SEND ? "send to"
                                               : "recv from";
  if (error.code != DTRUN_TIMEOUT && error.code != DTRUN_REMOTE_FAILURE) return;
  if (!collective && op.peer >= 0) error.ranks = {op.peer};
  if (collective && ring_ != nullptr) {
    auto [text, behind] = making_.recorder->Whereabouts(*ring_, op.sequence);
    if (!text.empty()) error.text += "; " + text;
    if (error.code == DTRUN_TIMEOUT) error.ranks = std::move(behind);
  }
  error.text += RankInJob(error.peer);
}

std::string dtrun_comm::RankInJob(int peer) const {
  if (peer < 0 || static_cast<std::size_t>(peer) >= making_.world_ranks.size()) return {};
  const int rank = making_.world_ranks[static_cast<std::size_t>(peer)];
  return rank == peer ? "" : fmt::format("; its rank {} is rank {} of the job", peer, rank);
}

dtrun_comm::~dtrun_comm() {
  if (host_.comm == nullptr) return;
  EndWatch();
  if (making_.recorder != nullptr) {
    making_.recorder->Unwatch(this);
    making_.recorder->Release(ring_);
  }
  bool running = false;
  for (dtrun_work* work = works_; work != nullptr; work = work->next) {
    PluginError ignored;  // the program did not ask for its result either
    running = running || (work->request != nullptr && !work->succeeded &&
                          work->route->carrier.table.req_test(work->request, &ignored) == DTRUN_PENDING);
  }
  if (running) {
    AbortBackend(fmt::format("rank {} called {} while an operation ran", making_.rank,
                             making_.name == "world" ? "finalize" : "free"));
  }
  while (works_ != nullptr) {
    dtrun_work& work = *works_;
    if (work.request != nullptr) ReleaseRequest(*work.route, std::exchange(work.request, nullptr));
    work.comm = nullptr;
    Unlink(work);
    if (work.dropped) delete &work;
  }
  Delete(group_.first);  // a group that was never ended has no other owner
  while (!streams_.empty()) DestroyStream(dtrun_stream(streams_.back()));
  while (!registered_.empty()) {
    const std::uintptr_t first = registered_.begin()->first;
    Deregister(reinterpret_cast<void*>(first));  // NOLINT(performance-no-int-to-ptr)
  }
  while (!memory_.empty()) Free(memory_.begin()->first);
  if (stuck_) return;
  for (comm::Route* route : {device_.load(), &host_}) {
    if (route != nullptr) comm::Destroy(making_, *route);
  }
}

// The streams have gone on, but the program may wait for something else.
void dtrun_comm::TellUnheard() {
  if (heard_ || !making_.unheard) return;
  making_.unheard(
      fmt::format("{}; rank {} has made no call on '{}' in the {} since, which would have told it, so this "
                  "process ends; call "
                  "work_test where the program waits for something else",
                  failure_.text, making_.rank, making_.name, dtrun::FormatDuration(making_.timeout)));
}

Status dtrun_comm::Usable() {
  if (!failed_.load(std::memory_order_acquire)) return {};
  heard_ = true;
  return failure_;
}

dtrun_status dtrun_comm::Abort(std::string_view reason, dtrun_error* err) {
  for (const comm::Route* route : Routes()) {
    if (route == nullptr || route->CanAbort()) continue;
    return Error{DTRUN_UNSUPPORTED, fmt::format("backend '{}' cannot abort '{}'; end the process instead",
                                                route->carrier.name, making_.name)}
        .CopyTo(err);
  }
  const std::string text(reason.empty() ? "no reason given" : reason);
  Remember(Error{DTRUN_ABORTED,
                 fmt::format("'{}' was aborted: {}", making_.name, text),
                 -1,
                 ErrorId::kAborted,
                 {},
                 {{"communicator", making_.name}}});
  AbortBackend(text);
  if (making_.aborted) making_.aborted(text);
  return DTRUN_OK;
}

void dtrun_comm::Misused(const char* call, const Error& error) {
  const std::string text = fmt::format("{}: {}", call, error.text);
  Remember(Error{error.code, text});
  if (making_.warn) making_.warn(text);
}

void dtrun_comm::AbortBackend(std::string_view reason) {
  const std::string text(reason);  // strings that cross the ABI end with NUL
  dtrun_abort_params params;
  DTRUN_INIT(params);
  params.reason = {text.c_str(), text.size()};
  for (const comm::Route* route : Routes()) {
    if (route == nullptr || !route->CanAbort()) continue;
    PluginError error;
    if (route->carrier.table.comm_abort(route->comm, &params, &error) == DTRUN_OK) continue;
    // Its calls still end with their deadlines, and the first failure remains.
    if (!making_.warn) continue;
    making_.warn(fmt::format("backend '{}' has not aborted '{}': {}", route->carrier.name, making_.name,
                             dtrun::Printable(error.message)));
  }
}

dtrun_status dtrun_comm::Fail(const dtrun_op& op, dtrun_status status, const dtrun_error& cause,
                              dtrun_error* err) {
  // A backend may get other bytes than it expects, or lose a rank that did, before the checker has run.
  if (ring_ != nullptr) {
    std::optional<Error> differs;
    if (sdk::IsCollective(op.kind)) differs = making_.recorder->Difference(*ring_, making_.name, op.sequence);
    if (!differs) differs = making_.recorder->MessageDifference(*ring_, making_.name);
    if (differs) {
      Record(*differs);
      AbortBackend(differs->text);
      std::this_thread::sleep_for(kOthersLook);
      return FirstFailure(err);
    }
  }
  const std::string call = comm::Describe(op, making_.name);
  const std::string_view said(cause.message, ::strnlen(cause.message, sizeof cause.message));
  Error error = Explained(status, cause, said.find(call) == said.npos ? call : "");
  if (IsRefusal(status)) return error.CopyTo(err);
  AddFacts(op, error);
  Record(error);
  return FirstFailure(err);
}

bool dtrun_comm::Record(const Error& error) {
  if (!Remember(error)) return false;
  if (making_.report && (error.code == DTRUN_REMOTE_FAILURE || error.code == DTRUN_TIMEOUT)) {
    making_.report(error);
  }
  return true;
}

bool dtrun_comm::Remember(const Error& error) {
  const std::lock_guard lock(failure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return false;
  failure_ = error;
  failed_.store(true, std::memory_order_release);
  return true;
}

dtrun_status dtrun_comm::FirstFailure(dtrun_error* err) {
  if (!watch_.IsCaller()) heard_ = true;
  return failure_.CopyTo(err);
}
