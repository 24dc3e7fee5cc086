// Groups: operations that start together and end as one work.
//
// The works of a group are chained by `together`; the first represents all of them.
#include <fmt/format.h>

#include <utility>

#include "core/base/plugin_error.h"
#include "core/comm/communicator.h"
#include "dtrun/plugin/names.hpp"

using dtrun::Error;
using dtrun::Explained;
using dtrun::PluginError;
using dtrun::Status;
namespace comm = dtrun::comm;
namespace sdk = dtrun::sdk;

namespace {

constexpr dtrun_group_params kGroup{sizeof(dtrun_group_params), 0};

}  // namespace

dtrun_status dtrun_comm::GroupBegin(dtrun_error* err) {
  const std::lock_guard lock(enqueue_mutex_);
  if (failed_.load(std::memory_order_acquire)) return FirstFailure(err);
  if (group_.open) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("group_begin: '{}' has a group open already; end it first", making_.name)}
        .CopyTo(err);
  }
  if (host_.carrier.table.group_begin != nullptr) {
    PluginError cause;
    if (const dtrun_status status = host_.carrier.table.group_begin(host_.comm, &kGroup, &cause);
        status != DTRUN_OK) {
      return Explained(status, cause, fmt::format("group on '{}'", making_.name)).CopyTo(err);
    }
  }
  group_ = {true, std::this_thread::get_id(), nullptr, nullptr};
  group_.end = &group_.first;
  return DTRUN_OK;
}

Status dtrun_comm::JoinGroup(comm::Route& route, const dtrun_op& op, bool wants_work) {
  if (group_.owner != std::this_thread::get_id()) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("{}: another thread has a group open on '{}'; start it after its "
                             "group_end",
                             sdk::OperationName(op.kind), making_.name)};
  }
  if (wants_work) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("{}: inside a group work is NULL; group_end gives one for all",
                             sdk::OperationName(op.kind))};
  }
  if (!route.OfDevice() || group_.of_device) return {};
  group_.of_device = true;
  if (route.carrier.table.group_begin == nullptr) return {};
  PluginError cause;
  const dtrun_status status = route.carrier.table.group_begin(route.comm, &kGroup, &cause);
  if (status == DTRUN_OK) return {};
  return Explained(status, cause, fmt::format("group on '{}'", making_.name));
}

dtrun_status dtrun_comm::GroupEnd(dtrun_work** out, dtrun_error* err) {
  std::unique_ptr<dtrun_work> empty = std::make_unique<dtrun_work>();
  dtrun_work* group = nullptr;
  PluginError cause;
  dtrun_status status = DTRUN_OK;
  {
    const std::lock_guard lock(enqueue_mutex_);
    if (!group_.open || group_.owner != std::this_thread::get_id()) {
      return Error{DTRUN_FAILED_PRECONDITION,
                   fmt::format("group_end: this thread has no group open on '{}'; group_begin "
                               "opens one",
                               making_.name)}
          .CopyTo(err);
    }
    for (const comm::Route* route : Routes()) {
      const bool open = route != nullptr && (!route->OfDevice() || group_.of_device);
      if (!open || route->carrier.table.group_end == nullptr) continue;
      // End both, even if one fails: an open group would never start, and never end.
      PluginError own;
      const dtrun_status ended = route->carrier.table.group_end(route->comm, &kGroup, &own);
      if (status != DTRUN_OK || ended == DTRUN_OK) continue;
      status = ended;
      cause = own;
    }
    group = std::exchange(group_, {}).first;
    for (dtrun_work* one = group; one != nullptr; one = one->together) {
      if (one->request != nullptr && one->route->OfDevice()) watch_.Add(*one);
    }
    if (group == nullptr) {
      empty->comm = this;
      Link(*empty);
      group = empty.release();
    }
  }
  // Unlike a rejected single call, this leaves operations behind that may have started.
  if (status != DTRUN_OK) {
    Record(Explained(status, cause, fmt::format("group on '{}'", making_.name)));
  }
  if (failed_.load(std::memory_order_acquire)) {
    status = FirstFailure(err);
  } else if (out != nullptr) {
    *out = group;
    return DTRUN_OK;
  } else {
    status = WaitForHosts(*group, err);
  }
  if (status != DTRUN_OK) AbortBackend("an operation of a group failed");
  Release(group);
  return status;
}
