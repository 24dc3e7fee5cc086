// Throws dtrun::Failure for what the torch layer itself refuses. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "dtrun/dtrun.hpp"

namespace dtrun::torch::detail {

// A message longer than dtrun_error holds is cut at a UTF-8 character.
[[noreturn]] inline void fail(dtrun_status code, const std::string& message) {
  dtrun_error error;
  DTRUN_INIT(error);
  error.code = code;
  error.peer = -1;
  std::size_t length = std::min<std::size_t>(message.size(), DTRUN_ERROR_MESSAGE_BYTES - 1);
  if (length < message.size()) {
    while (length > 0 && (static_cast<unsigned char>(message[length]) & 0xC0U) == 0x80U) --length;
  }
  std::memcpy(error.message, message.data(), length);
  throw Failure(error);
}

}  // namespace dtrun::torch::detail
