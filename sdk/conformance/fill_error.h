// Fills a caller's dtrun_error, as a host does. Any thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "dtrun/abi/error.h"

namespace dtrun::conformance {

inline dtrun_status FillError(dtrun_error* err, dtrun_status code, const std::string& text) {
  if (err == nullptr) return code;
  err->code = code;
  err->peer = -1;
  const std::size_t size = std::min(text.size(), sizeof err->message - 1);
  std::memcpy(err->message, text.data(), size);
  err->message[size] = '\0';
  return code;
}

}  // namespace dtrun::conformance
