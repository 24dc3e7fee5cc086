// Errors that come out of a plugin's table. Pure functions; any thread.
#pragma once

#include <cstring>
#include <string_view>

#include "core/base/error.h"

namespace dtrun::comm {

// What core hands to a plugin's member. Not DTRUN_INIT: clearing the whole message costs as
// much as the rest of a small call, and an empty one needs a single byte.
struct PluginError : dtrun_error {
  PluginError() {
    struct_size = sizeof(dtrun_error);
    Clear();
  }
  void Clear() {
    flags = 0;
    code = DTRUN_OK;
    peer = -1;
    vendor_code = 0;
    std::memset(vendor_domain, 0, sizeof vendor_domain);
    message[0] = '\0';
  }
};

// A plugin's failure with what was tried in front. The status wins over the code inside.
inline Error Explained(dtrun_status status, const dtrun_error& cause, std::string_view context) {
  Error error = Error::From(cause, context);
  error.code = status;
  return error;
}

}  // namespace dtrun::comm
