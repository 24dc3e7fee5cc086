#include "core/base/error.h"

#include <sys/resource.h>

#include <cerrno>
#include <system_error>

#include "core/base/text.h"

namespace dtrun {
Error Error::System(std::string_view action, int number) {
  std::string cause = std::generic_category().message(number);
  if (!cause.empty()) cause[0] = ToLower(cause[0]);
  if (rlimit limit{}; number == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    cause += "; raise `ulimit -n`, which is " + std::to_string(limit.rlim_cur);
  return Error{DTRUN_SYSTEM, std::string(action) + ": " + cause, -1};
}

dtrun_status Error::CopyTo(dtrun_error* out) const {
  return dtrun_error_set_text(out, code, peer, text.data(), text.size());
}

const char* StatusText(dtrun_status status) {
  switch (status) {
    case DTRUN_OK: return "ok";
    case DTRUN_PENDING: return "pending";
    case DTRUN_INVALID_ARGUMENT: return "invalid argument";
    case DTRUN_UNSUPPORTED: return "unsupported";
    case DTRUN_FAILED_PRECONDITION: return "failed precondition";
    case DTRUN_NOT_FOUND: return "not found";
    case DTRUN_OUT_OF_MEMORY: return "out of memory";
    case DTRUN_TIMEOUT: return "timeout";
    case DTRUN_ABORTED: return "aborted";
    case DTRUN_REMOTE_FAILURE: return "remote failure";
    case DTRUN_SYSTEM: return "system error";
    case DTRUN_VENDOR: return "vendor library error";
    case DTRUN_BUSY: return "busy";
    case DTRUN_MISMATCH: return "mismatch between ranks";
    default: return "internal error";
  }
}

}  // namespace dtrun
