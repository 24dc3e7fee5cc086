#include "core/comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/plugin_error.h"
#include "core/base/printable.h"
#include "core/comm/plugin_call.h"

using dtrun::Error;
using dtrun::Explained;
using dtrun::Nanoseconds;
using dtrun::PluginError;
using dtrun::Result;
using dtrun::Status;
using dtrun::comm::PluginCall;
namespace comm = dtrun::comm;
namespace sdk = dtrun::sdk;

namespace {

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

  made->scope_.query_support = m.backend.query_support;
  made->scope_.instance = m.instance;

  dtrun_backend_caps& caps = made->scope_.caps;
  DTRUN_INIT(caps);
  PluginError error;
  std::optional<PluginCall> call(std::in_place, fmt::format("backend '{}', in query_caps", m.backend_name),
                                 m.Limit(), m.report);
  const dtrun_status asked = m.backend.query_caps(m.instance, &caps, &error);
  call.reset();
  if (asked != DTRUN_OK) {
    return Explained(asked, error, fmt::format("what backend '{}' can do", m.backend_name));
  }

  if (const std::uint32_t unknown = caps.flags & DTRUN_FLAGS_MUST_UNDERSTAND; unknown != 0) {
    return Error{DTRUN_UNSUPPORTED,
                 fmt::format("backend '{}' has the capabilities {:#x}, which this dtrun would have to "
                             "understand; upgrade dtrun or install an older release of the plugin",
                             m.backend_name, unknown)};
  }

  dtrun_comm_params params;
  DTRUN_INIT(params);
  params.rank = m.rank;
  params.size = m.size;
  params.host_count = m.host_count;
  params.host = m.node_rank;
  params.interface_name = {m.interface_name.c_str(), m.interface_name.size()};
  params.address = {m.address.c_str(), m.address.size()};
  params.local_processors = m.local_processors;
  params.generation = m.generation;
  params.name = {m.name.c_str(), m.name.size()};
  params.kv = m.kv;
  params.timeout_ns = m.timeout.count();
  params.hosts = m.hosts.empty() ? nullptr : m.hosts.data();
  params.local_rank = static_cast<std::int32_t>(std::count(
      m.hosts.begin(), m.hosts.begin() + std::min<std::ptrdiff_t>(m.rank, std::ssize(m.hosts)), m.node_rank));
  params.device_kind = DTRUN_DEVICE_HOST;
  params.device_index = -1;
  params.parent = m.parent;
  error.Clear();
  call.emplace(fmt::format("backend '{}', making '{}'", m.backend_name, m.name), m.Limit(), m.report);
  if (const dtrun_status status = m.backend.comm_create(m.instance, &params, &made->comm_, &error);
      status != DTRUN_OK) {
    made->comm_ = nullptr;
    return Explained(status, error,
                     fmt::format("rank {} joining the {} ranks of '{}' over backend '{}'", m.rank, m.size,
                                 m.name, m.backend_name));
  }
  if (made->comm_ == nullptr) {
    return Error{DTRUN_INTERNAL, fmt::format("backend '{}' reported success and made no communicator '{}'; "
                                             "report it to the plugin's author",
                                             m.backend_name, m.name)};
  }
  made->StartRecording();
  return made;
}

void dtrun_comm::StartRecording() {
  if (making_.recorder == nullptr || making_.size == 1) return;
  ring_ = making_.recorder->Claim(making_.name, making_.rank, making_.size);
  making_.recorder->Watch(this, making_.name,
                          {[this](const Error& error) { Remember(error, PluginError()); },
                           [this](const Error& error) { AbortBackend(error.text); }});
}

std::string dtrun_comm::Whereabouts(const dtrun_op& op) const {
  if (ring_ == nullptr || !sdk::IsCollective(op.kind)) return {};
  const std::string text = making_.recorder->Whereabouts(*ring_, op.sequence);
  return text.empty() ? text : "; " + text;
}

dtrun_comm::~dtrun_comm() {
  if (comm_ == nullptr) return;
  if (making_.recorder != nullptr) {
    making_.recorder->Unwatch(this);
    making_.recorder->Release(ring_);
  }
  const dtrun_backend& table = making_.backend;
  bool running = false;
  for (dtrun_work* work = works_; work != nullptr; work = work->next) {
    PluginError ignored;  // whoever started it did not ask either
    running = running || (work->request != nullptr && !work->succeeded &&
                          table.req_test(work->request, &ignored) == DTRUN_PENDING);
  }
  if (running) AbortBackend(making_.name == "world" ? "dtrun_finalize" : "dtrun_comm_free");
  while (works_ != nullptr) {
    dtrun_work& work = *works_;
    if (work.request != nullptr) ReleaseRequest(std::exchange(work.request, nullptr));
    work.comm = nullptr;
    Unlink(work);
  }
  Delete(group_.first);  // a group that was never ended belongs to nobody else
  while (!memory_.empty()) Free(*memory_.begin());
  if (stuck_) return;
  const PluginCall call(fmt::format("backend '{}', ending '{}'", making_.backend_name, making_.name),
                        making_.Limit(), making_.report);
  table.comm_destroy(comm_);
}

Status dtrun_comm::Usable() {
  if (!failed_.load(std::memory_order_acquire)) return {};
  return Error{failure_.code, failure_.message, failure_.peer};
}

dtrun_status dtrun_comm::Abort(std::string_view reason, dtrun_error* err) {
  if (!CanAbort()) {
    return Error{DTRUN_UNSUPPORTED, fmt::format("backend '{}' cannot abort '{}'; end the process instead",
                                                making_.backend_name, making_.name)}
        .CopyTo(err);
  }
  const std::string text(reason.empty() ? "no reason given" : reason);
  Remember(Error{DTRUN_ABORTED, fmt::format("'{}' was aborted: {}", making_.name, text)}, PluginError());
  AbortBackend(text);
  if (making_.aborted) making_.aborted(text);
  return DTRUN_OK;
}

bool dtrun_comm::CanAbort() const {
  return making_.backend.comm_abort != nullptr && (scope_.caps.flags & DTRUN_CAP_ABORT) != 0;
}

void dtrun_comm::AbortBackend(std::string_view reason) {
  if (!CanAbort()) return;
  const std::string text(reason);  // strings that cross the ABI end with NUL
  dtrun_abort_params params;
  DTRUN_INIT(params);
  params.reason = {text.c_str(), text.size()};
  PluginError error;
  if (making_.backend.comm_abort(comm_, &params, &error) == DTRUN_OK) return;
  // Its calls end with their deadlines all the same, and the first failure stays what it was.
  if (!making_.warn) return;
  making_.warn(fmt::format("backend '{}' has not aborted '{}': {}", making_.backend_name, making_.name,
                           dtrun::Printable(error.message)));
}

dtrun_status dtrun_comm::Fail(const dtrun_op& op, dtrun_status status, const dtrun_error& cause,
                              dtrun_error* err) {
  Error error = Explained(status, cause, comm::Describe(op, making_.name));
  if (IsRefusal(status)) return error.CopyTo(err);
  if (status == DTRUN_TIMEOUT || status == DTRUN_REMOTE_FAILURE) error.text += Whereabouts(op);
  Record(error, cause);
  return FirstFailure(err);
}

bool dtrun_comm::Record(const Error& error, const dtrun_error& cause) {
  if (!Remember(error, cause)) return false;
  if (making_.report && (error.code == DTRUN_REMOTE_FAILURE || error.code == DTRUN_TIMEOUT)) {
    making_.report(error.peer, error.text);
  }
  return true;
}

bool dtrun_comm::Remember(const Error& error, const dtrun_error& cause) {
  const std::lock_guard lock(failure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return false;
  DTRUN_INIT(failure_);
  error.CopyTo(&failure_);
  char domain[sizeof cause.vendor_domain + 1] = {};  // a plugin's may have no end
  std::memcpy(domain, cause.vendor_domain, sizeof cause.vendor_domain);
  dtrun_error_set_vendor(&failure_, domain, cause.vendor_code);
  failed_.store(true, std::memory_order_release);
  return true;
}

dtrun_status dtrun_comm::FirstFailure(dtrun_error* err) {
  dtrun_error_set(err, failure_.code, failure_.peer, failure_.message);
  dtrun_error_set_vendor(err, failure_.vendor_domain, failure_.vendor_code);
  return failure_.code;
}
