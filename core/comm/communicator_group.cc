// Groups: operations that start together and end as one work.
//
// The works of a group are chained by `together`; the first stands for all of them.
#include <fmt/format.h>

#include <utility>

#include "core/base/plugin_error.h"
#include "core/comm/communicator.h"

using dtrun::Error;
using dtrun::Explained;
using dtrun::PluginError;

namespace {

constexpr dtrun_group_params kGroup{sizeof(dtrun_group_params), 0};

}  // namespace

dtrun_status dtrun_comm::GroupBegin(dtrun_error* err) {
  const std::lock_guard lock(enqueue_mutex_);
  if (failed_.load(std::memory_order_acquire)) return FirstFailure(err);
  if (group_.open) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("dtrun_group_begin: '{}' has a group open already; end it first", making_.name)}
        .CopyTo(err);
  }
  if (making_.backend.group_begin != nullptr) {
    PluginError cause;
    if (const dtrun_status status = making_.backend.group_begin(comm_, &kGroup, &cause); status != DTRUN_OK) {
      return Explained(status, cause, fmt::format("group on '{}'", making_.name)).CopyTo(err);
    }
  }
  group_ = {true, std::this_thread::get_id(), nullptr, nullptr};
  group_.end = &group_.first;
  return DTRUN_OK;
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
                   fmt::format("dtrun_group_end: this thread has no group open on '{}'; dtrun_group_begin "
                               "opens one",
                               making_.name)}
          .CopyTo(err);
    }
    if (making_.backend.group_end != nullptr) status = making_.backend.group_end(comm_, &kGroup, &cause);
    group = std::exchange(group_, {}).first;
    if (group == nullptr) {
      empty->comm = this;
      Link(*empty);
      group = empty.release();
    }
  }
  // Unlike a single call, a refusal here leaves operations behind that may have started.
  if (status != DTRUN_OK) {
    Record(Explained(status, cause, fmt::format("group on '{}'", making_.name)), cause);
  }
  if (failed_.load(std::memory_order_acquire)) {
    status = FirstFailure(err);
  } else if (out != nullptr) {
    *out = group;
    return DTRUN_OK;
  } else {
    status = Wait(*group, -1, err);
  }
  if (status != DTRUN_OK) AbortBackend("an operation of a group failed");
  Release(group);
  return status;
}
