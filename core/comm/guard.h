// The entry to the C API: lets no exception out, and rejects calls in a forked child.
//
// Stateless; any thread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "core/comm/communicator.h"
#include "core/comm/runtime.h"

namespace dtrun::comm {

inline Error Thrown(const std::exception& error) {
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
    return Error{DTRUN_SYSTEM, "no thread can be started here any more; raise `ulimit -u`"};
  return Error{DTRUN_INTERNAL, std::string("unexpected exception: ") + error.what()};
}

inline dtrun_status Returned(dtrun_status status, dtrun_error*) { return status; }
inline dtrun_status Returned(const Status& status, dtrun_error* err) {
  return status ? dtrun_status{DTRUN_OK} : status.error().CopyTo(err);
}

// Runs `body`, which returns a dtrun_status, or a Status that becomes one; so does an exception.
template <class Body>
dtrun_status Guard(dtrun_error* err, Body&& body) noexcept {
  try {
    if (Forked()) return ForkError().CopyTo(err);
    return Returned(body(), err);
  } catch (const std::bad_alloc&) {
    return Error{DTRUN_OUT_OF_MEMORY, {}}.CopyTo(err);
  } catch (const std::exception& error) {
    try {
      return Thrown(error).CopyTo(err);
    } catch (...) {
      return Error{DTRUN_INTERNAL, {}}.CopyTo(err);
    }
  } catch (...) {
    return Error{DTRUN_INTERNAL, {}}.CopyTo(err);
  }
}

// For functions that return nothing.
template <class Body>
void GuardVoid(Body&& body) noexcept {
  (void)Guard(nullptr, [&] {
    body();
    return dtrun_status{DTRUN_OK};
  });
}

// Checks a handle before `body` uses it.
template <class Body>
dtrun_status WithComm(dtrun_comm* comm, dtrun_error* err, Body&& body) noexcept {
  return Guard(err, [&]() -> dtrun_status {
    if (comm != nullptr) return Returned(body(), err);
    return Error{DTRUN_INVALID_ARGUMENT, "the communicator is null; dtrun_world gives one after dtrun_init"}
        .CopyTo(err);
  });
}

inline Error AlreadyReleased(dtrun_work* work) {
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("the work handle {} was released before; release each handle once, and use it "
                           "before that only",
                           static_cast<void*>(work))};
}

// Checks a handle before `body` uses its communicator.
template <class Body>
dtrun_status WithWork(dtrun_work* work, dtrun_error* err, Body&& body) noexcept {
  return Guard(err, [&]() -> dtrun_status {
    if (work == nullptr) return Error{DTRUN_INVALID_ARGUMENT, "the work handle is null"}.CopyTo(err);
    if (!dtrun_work::IsHeld(work)) return AlreadyReleased(work).CopyTo(err);
    if (work->comm == nullptr) {
      return Error{DTRUN_FAILED_PRECONDITION,
                   "the operation belongs to a communicator that finalize or free has ended"}
          .CopyTo(err);
    }
    return Returned(body(*work->comm), err);
  });
}

// A copy of the caller's operation, up to the fields that these headers know.
inline Result<dtrun_op> GivenOp(const dtrun_op* op, const char* call) {
  constexpr std::size_t kSmallest = offsetof(dtrun_op, kind) + sizeof op->kind;
  if (op == nullptr) return Error{DTRUN_INVALID_ARGUMENT, std::string(call) + ": op is null"};
  if (op->struct_size < kSmallest) {
    return Error{DTRUN_INVALID_ARGUMENT, std::string(call) + ": op has a struct_size of " +
                                             std::to_string(op->struct_size) + "; DTRUN_INIT sets it"};
  }
  dtrun_op given;
  DTRUN_INIT(given);
  std::memcpy(&given, op, std::min<std::size_t>(op->struct_size, sizeof given));
  given.struct_size = sizeof given;
  return given;
}

}  // namespace dtrun::comm
