// The way into the C API: no exception leaves, and a forked child gets no further.
//
// Stateless; any thread.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "core/comm/communicator.h"
#include "core/comm/process.h"

namespace dtrun::comm {

// Runs what may fail; an exception becomes a status.
template <class Body>
dtrun_status Guard(dtrun_error* err, Body&& body) noexcept {
  try {
    if (Forked()) return ForkError().CopyTo(err);
    return body();
  } catch (const std::bad_alloc&) {
    return Error{DTRUN_OUT_OF_MEMORY, {}}.CopyTo(err);
  } catch (const std::exception& error) {
    try {
      return Error{DTRUN_INTERNAL, std::string("unexpected exception: ") + error.what()}.CopyTo(err);
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
    if (comm != nullptr) return body();
    return Error{DTRUN_INVALID_ARGUMENT, "the communicator is null; dtrun_world gives one after dtrun_init"}
        .CopyTo(err);
  });
}

}  // namespace dtrun::comm
