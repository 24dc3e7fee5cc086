// Throws dtrun::Failure for what the torch layer itself refuses. Any thread.
#pragma once

#include <string>

#include "dtrun/dtrun.hpp"

namespace dtrun::torch::detail {

// A message longer than dtrun_error holds is cut at a UTF-8 character.
[[noreturn]] inline void fail(dtrun_status code, const std::string& message) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  dtrun_error_set_text(&error, code, -1, message.data(), message.size());
  throw Failure(error);
}

}  // namespace dtrun::torch::detail
