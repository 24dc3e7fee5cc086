// Fills a caller's dtrun_error, as a host does. Any thread.
#pragma once

#include <string>

#include "dtrun/abi/error.h"

namespace dtrun::conformance {

inline dtrun_status FillError(dtrun_error* err, dtrun_status code, const std::string& text) {
  return dtrun_error_set_text(err, code, -1, text.data(), text.size());
}

}  // namespace dtrun::conformance
