// group.hpp - operations of a communicator that start and end as one.
//
// Header-only, C++17; included by dtrun.hpp. The thread that makes a Group is the only one that may use its
// communicator until the Group has ended.
#pragma once

#include <cstdint>
#include <exception>

#include "dtrun/dtrun.hpp"

namespace dtrun {

// Operations started as one. Between construction and end, the blocking forms of `comm`
// return at once and the _async forms are refused.
class Group {
 public:
  explicit Group(Communicator comm) : comm_(comm.get()) {
    detail::check([&](dtrun_error* e) { return dtrun_group_begin(comm_, e); });
  }
  // Ends what end() did not. Where an exception left the group, its operations may never be matched: what has
  // not completed is aborted, with the communicator.
  ~Group() {
    if (!open_) return;
    const bool left = std::uncaught_exceptions() > exceptions_;
    dtrun_work* work = nullptr;
    std::int32_t done = 1;
    if (dtrun_group_end(comm_, left ? &work : nullptr, nullptr) != DTRUN_OK || !left) return;
    (void)dtrun_work_test(work, &done, nullptr);
    if (done == 0) (void)dtrun_comm_abort(comm_, "an exception left a group", nullptr);
    dtrun_work_release(work);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void end() {
    open_ = false;
    detail::check([&](dtrun_error* e) { return dtrun_group_end(comm_, nullptr, e); });
  }
  [[nodiscard]] Work end_async() {
    open_ = false;
    dtrun_work* work = nullptr;
    detail::check([&](dtrun_error* e) { return dtrun_group_end(comm_, &work, e); });
    return Work(work);
  }

 private:
  dtrun_comm* comm_;
  bool open_ = true;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace dtrun
