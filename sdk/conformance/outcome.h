// What a call of the plugin returned, and what holds for the answer of every call. Any thread.
#pragma once

#include <exception>
#include <ostream>
#include <string>

#include "dtrun/abi.h"

namespace dtrun::conformance {

// What a call returned.
struct Outcome {
  dtrun_status code = DTRUN_OK;
  int peer = -1;
  std::string text;
  bool ok() const { return code == DTRUN_OK; }
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome);

// Of `status` and the error of that call; expects the rules E2, E3 and E5.
Outcome ReadOutcome(dtrun_status status, const dtrun_error& error);

// Fails the case (E1); `what` was thrown.
Outcome Thrown(const std::string& what);

// An error as a newer host makes it.
struct LongerError {
  LongerError();
  dtrun_error known;
  char later[64];  // members that this plugin does not know
};

// The size must be the caller's still (E4), and the process this one (T8).
void ExpectIntact(const LongerError& error);

// Calls with a fresh error and reads it. An exception is a failure of the case.
template <class Call>
Outcome Ask(Call&& call) {
  LongerError error;
  try {
    const dtrun_status status = call(&error.known);
    ExpectIntact(error);
    return ReadOutcome(status, error.known);
  } catch (const std::exception& exception) {
    return Thrown(exception.what());
  } catch (...) {
    return Thrown("something that is no std::exception");
  }
}

}  // namespace dtrun::conformance
