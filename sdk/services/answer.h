// What a plugin's callback, a member of a struct that it has given to a service, answers.
//
// Stateless; any thread.
#pragma once

#include <cxxabi.h>

#include <exception>
#include <string>

#include "dtrun/plugin/failure.hpp"

namespace dtrun::services {

inline sdk::Failure Threw(const char* member, const char* what) {
  return sdk::Failure(DTRUN_INTERNAL, std::string("the plugin's ") + member +
                                          " threw an exception, which no plugin may: " + what +
                                          "; report it to the plugin's author");
}

// Calls `ask(&error)` of the plugin's `member` and throws its failure, also in place of an exception, which
// would leave others without an answer. It must not return "pending".
template <class Ask>
void CheckAnswer(const char* member, Ask&& ask) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  dtrun_status status = DTRUN_OK;
  try {
    status = ask(&error);
  } catch (const abi::__forced_unwind&) {  // the end of the thread, which may not be stopped
    throw;
  } catch (const std::exception& thrown) {
    throw Threw(member, thrown.what());
  } catch (...) {
    throw Threw(member, "no std::exception");
  }
  if (status == DTRUN_OK) return;
  if (status > DTRUN_PENDING && status <= DTRUN_MISMATCH) throw sdk::Failure(error, status);
  throw sdk::Failure(DTRUN_INTERNAL, std::string("the plugin's ") + member + " returned status " +
                                         std::to_string(status) + "; return DTRUN_OK or a failure");
}

}  // namespace dtrun::services
