// Validates errors returned by plugins, which core does not trust: invalid statuses, texts without a
// terminator or with control characters. Values and pure functions; any thread.
#pragma once

#include <cstring>
#include <string_view>

#include "core/base/error.h"

namespace dtrun {

// The error struct that core passes to a plugin's member. Not DTRUN_ERROR_INIT: clearing the whole message
// costs as much as the rest of a small call, and an empty one needs a single byte.
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

// Converts a plugin's failure, with `context` in front. `status` is the member's return value and overrides
// the code in `cause`. An invalid status becomes DTRUN_INTERNAL, and the text says so.
Error Explained(dtrun_status status, const dtrun_error& cause, std::string_view context);

}  // namespace dtrun
