// The one error type inside core.
//
// A value, owned by its holder; any thread may read it. Text follows the rules of
// dtrun/abi/error.h: lower case, values quoted, exact cause, next step last. It is written where
// the cause is first known and not wrapped again on the way up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dtrun/abi/error.h"

namespace dtrun {

struct Error {
  dtrun_status code = DTRUN_INTERNAL;
  std::string text;
  int peer = -1;  // rank that failed or disconnected; -1 when unknown

  // `action` is the operation that failed ("open '/x/y'"); the text becomes "open '/x/y': no such
  // file or directory". `number` is an errno value.
  static Error System(std::string_view action, int number);

  // Fills a caller's struct, which may be null, and returns the code. Long text is truncated at a
  // UTF-8 character boundary.
  dtrun_status CopyTo(dtrun_error* out) const;
};

// dtrun's exit code for errors that the user can fix before any rank starts: options, configuration, hosts.
inline constexpr int kUserError = 2;

// "invalid argument", "timeout", ...; "internal error" for unknown values.
const char* StatusText(dtrun_status status);

}  // namespace dtrun
