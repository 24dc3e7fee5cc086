#include "core/comm/comm_state.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/error_id.h"
#include "core/base/text.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {
namespace {

// A rank that knows why the calls fail stays this long, so that the others can read its calls.
constexpr std::chrono::milliseconds kOthersLook{200};

// "; its rank 1 is rank 3 of the job", if the numbers differ.
std::string RankInJob(const Making& making, int peer) {
  if (peer < 0 || static_cast<std::size_t>(peer) >= making.world_ranks.size()) return {};
  const int rank = making.world_ranks[static_cast<std::size_t>(peer)];
  return rank == peer ? "" : fmt::format("; its rank {} is rank {} of the job", peer, rank);
}

}  // namespace

Error Answered(const Making& making, dtrun_status status, const dtrun_error& cause,
               std::string_view context) {
  Error error = Explained(status, cause, context);
  if (error.peer < 0 || error.peer >= making.size) error.peer = -1;
  return error;
}

CommState::CommState(Making made, DeviceWatch::Hooks hooks)
    : making(std::move(made)), watch(std::move(hooks)) {
  host.carrier = {making.backend, making.instance, making.backend_name, false, making.extensions};
}

CommState::~CommState() {
  StopRecording();
  if (stuck) return;
  for (Route* route : {device(), &host}) {
    if (route != nullptr && route->comm != nullptr) Destroy(making, *route);
  }
}

void CommState::SetDevice(std::unique_ptr<Route> route) {
  device_route_ = std::move(route);
  device_.store(device_route_.get(), std::memory_order_release);
  if (failed()) Abort(failure_.text);  // meanwhile, by another thread
}

void CommState::StartRecording() {
  if (traces())
    trace_number_ = making.trace->AddCommunicator(making.name, making.backend_name, making.rank, making.size);
  if (making.recorder == nullptr || making.size == 1) return;
  ring_ = making.recorder->Claim(making.name, making.rank, making.size);
  making.recorder->Watch(
      this, making.name,
      {[this](const Error& error) { Remember(error); }, [this](const Error& error) { Abort(error.text); }});
}

void CommState::StopRecording() {
  if (making.recorder == nullptr) return;
  // No call is left that could fail.
  if (ring_ != nullptr && !failed() && making.unheard) {
    if (const auto differs = making.recorder->AnyDifference(*ring_, making.name)) {
      making.unheard(
          fmt::format("rank {} ends: its calls have succeeded, but {}", making.rank, differs->text));
    }
  }
  making.recorder->Unwatch(this, failed() && failure_.code == DTRUN_MISMATCH);
  making.recorder->Release(std::exchange(ring_, nullptr));
}

namespace {

contract::Message MessageOf(const dtrun_op& op, bool on_device) {
  return {.sends = op.kind == DTRUN_SEND,
          .peer = op.peer,
          .tag = op.tag,
          .on_device = on_device,
          .dtype = static_cast<std::uint8_t>(op.dtype),
          .count = op.count,
          .counted = (op.flags & DTRUN_OP_DETACHED) == 0};
}

}  // namespace

std::optional<contract::MessageLog> CommState::NoteMessage(const Route& route, const dtrun_op& op) {
  if (ring_ == nullptr || op.count == 0) return std::nullopt;
  return contract::Note(*ring_, MessageOf(op, route.OfDevice()));
}

void CommState::NoteMessageEnd(const dtrun_op& op) {
  if (ring_ == nullptr || op.count == 0 || sdk::IsCollective(op.kind)) return;
  contract::NoteEnd(*ring_, MessageOf(op, false));
}

std::uint64_t CommState::Announce(const sdk::Signature& signature, const std::string& device) {
  const std::lock_guard lock(order);
  ++sequence;
  if (ring_ != nullptr) contract::NameDevice(*ring_, device);
  Begin(sequence, signature);
  return sequence;
}

void CommState::Trace(const dtrun_op& op, std::int64_t began, std::int64_t given, std::int64_t end,
                      std::uint32_t thread, std::uint16_t flags) const {
  contract::TraceRecord record;
  record.type = contract::TraceType::kCall;
  record.operation = static_cast<std::uint8_t>(op.kind);
  record.dtype = static_cast<std::uint8_t>(op.dtype);
  record.reduce = static_cast<std::uint8_t>(op.reduce);
  record.communicator = trace_number_;
  record.flags = flags;
  record.peer = sdk::IsRooted(op.kind) ? op.root : op.peer;
  record.thread = thread;
  record.bytes = op.count * DtypeSize(op.dtype);
  record.number = op.sequence;
  record.start = began;
  record.given = given;
  record.end = end;
  making.trace->Note(record);
}

void CommState::TraceWait(const dtrun_op& op, std::int64_t began, std::int64_t end) const {
  contract::TraceRecord record;
  record.type = contract::TraceType::kWait;
  record.operation = static_cast<std::uint8_t>(op.kind);
  record.communicator = trace_number_;
  record.thread = making.trace->Thread();
  record.number = op.sequence;
  record.start = record.given = began;
  record.end = end;
  making.trace->Note(record);
}

void CommState::AddFacts(const dtrun_op& op, Error& error) const {
  const bool collective = sdk::IsCollective(op.kind);
  if (error.id == ErrorId::kNone) error.id = IdOfFailure(error.code);
  if (error.id == ErrorId::kNone) return;
  error.args["communicator"] = making.name;
  error.args["call"] = collective              ? sdk::OperationName(op.kind)
                       : op.kind == DTRUN_SEND ? "send to"
                                               : "recv from";
  if (error.code != DTRUN_TIMEOUT && error.code != DTRUN_REMOTE_FAILURE) return;
  if (!collective && op.peer >= 0) error.ranks = {op.peer};
  if (collective && ring_ != nullptr) {
    auto [text, behind] = making.recorder->Whereabouts(*ring_, op.sequence);
    if (!text.empty()) error.text += "; " + text;
    if (error.code == DTRUN_TIMEOUT) error.ranks = std::move(behind);
  }
  if (op.kind == DTRUN_RECV && op.peer >= 0 && ring_ != nullptr) {
    const std::string other = making.recorder->Unreceived(*ring_, op.peer);
    if (!other.empty()) error.text += "; " + other;
  }
  error.text += RankInJob(making, error.peer);
}

// The streams have gone on, but the program may wait for something else.
void CommState::TellUnheard() {
  if (heard_ || !making.unheard) return;
  making.unheard(
      fmt::format("{}; rank {} has made no call on '{}' in the {} since then, so it could not be notified: "
                  "this process ends; call work_test where the program waits for something else",
                  failure_.text, making.rank, making.name, FormatDuration(making.timeout)));
}

Status CommState::Usable() {
  if (!failed()) return {};
  heard_ = true;
  return failure_;
}

void CommState::Abort(std::string_view reason) {
  const std::string text(reason);  // strings that cross the ABI end with NUL
  dtrun_abort_params params;
  DTRUN_INIT(params);
  params.reason = {text.c_str(), text.size()};
  for (const Route* route : Routes()) {
    if (route == nullptr || !route->CanAbort()) continue;
    PluginError error;
    const OperationCall call = Enter(*route);
    const auto abort = [&] { return route->carrier.table.comm_abort(route->comm, &params, &error); };
    if (Answer(*route, &error, abort) == DTRUN_OK) continue;
    // Its calls still end with their deadlines, and the first failure remains.
    if (!making.warn) continue;
    making.warn(fmt::format("backend '{}' has not aborted '{}': {}", route->carrier.name, making.name,
                            Printable(error.message)));
  }
}

dtrun_status CommState::Fail(const dtrun_op& op, dtrun_status status, const dtrun_error& cause,
                             dtrun_error* err) {
  // A backend may get other bytes than it expects, or lose a rank that did, before the checker has run.
  if (ring_ != nullptr) {
    std::optional<Error> differs;
    if (sdk::IsCollective(op.kind)) differs = making.recorder->Difference(*ring_, making.name, op.sequence);
    if (!differs) differs = making.recorder->MessageDifference(*ring_, making.name);
    if (differs) {
      Record(*differs);
      Abort(differs->text);
      std::this_thread::sleep_for(kOthersLook);
      return FirstFailure(err);
    }
  }
  const std::string call = Describe(op, making.name);
  const std::string_view said(cause.message, ::strnlen(cause.message, sizeof cause.message));
  Error error = Answered(making, status, cause, said.find(call) == said.npos ? call : "");
  // Which breaks rule E3. With a route to a device another plugin may have answered.
  if (device() == nullptr) NoteMissingText(fmt::format("backend '{}'", making.backend_name), cause, error);
  // Mistakes of the caller leave the communicator usable: nothing was started.
  if (status == DTRUN_INVALID_ARGUMENT || status == DTRUN_UNSUPPORTED) return error.CopyTo(err);
  AddFacts(op, error);
  Record(error);
  return FirstFailure(err);
}

void CommState::Record(const Error& error) {
  const bool first = Remember(error);
  const bool tells = error.code == DTRUN_REMOTE_FAILURE || error.code == DTRUN_TIMEOUT ||
                     error.code == DTRUN_ABORTED || error.id == ErrorId::kPluginFault;
  if (first && making.report && tells) making.report(error);
}

bool CommState::Remember(const Error& error) {
  const std::lock_guard lock(failure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return false;
  failure_ = error;
  failed_.store(true, std::memory_order_release);
  return true;
}

dtrun_status CommState::FirstFailure(dtrun_error* err) {
  if (!watch.IsCaller()) heard_ = true;
  return failure_.CopyTo(err);
}

}  // namespace dtrun::comm
