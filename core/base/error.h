// Why something failed: the one error type inside core.
//
// A value, owned by whoever holds it; any thread may read it. Text follows the rules of
// dtrun/abi/error.h: lower case, values quoted, exact cause, next step last. It is
// written where the cause is first known and not wrapped again on the way up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dtrun/abi/error.h"

namespace dtrun {

struct Error {
  dtrun_status code = DTRUN_INTERNAL;
  std::string text;
  int peer = -1;  // rank that failed or went away; -1 when unknown

  // `action` says what was tried ("open '/x/y'"); the text becomes "open '/x/y': no such
  // file or directory". `number` is an errno value.
  static Error System(std::string_view action, int number);

  // Fills a caller's struct, which may be null, and returns the code. Long text is cut at
  // a UTF-8 character.
  dtrun_status CopyTo(dtrun_error* out) const;
};

// The exit code of dtrun for what a user can mend before any rank starts: options, configuration, hosts.
inline constexpr int kUserError = 2;

// "invalid argument", "timeout", ...; "internal error" for unknown values.
const char* StatusText(dtrun_status status);

}  // namespace dtrun
