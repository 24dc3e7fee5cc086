#include "core/base/error.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/base/text.h"
#include "core/base/utf8.h"

namespace dtrun {
namespace {

// Copies at most capacity - 1 bytes and never ends inside a UTF-8 character.
void CopyCut(char* out, std::size_t capacity, std::string_view text) {
  const std::string_view whole = PrefixWithin(text, capacity - 1);
  std::memcpy(out, whole.data(), whole.size());
  out[whole.size()] = '\0';
}

}  // namespace

Error Error::System(std::string_view action, int number) {
  std::string cause = std::generic_category().message(number);
  if (!cause.empty()) cause[0] = ToLower(cause[0]);
  if (rlimit limit{}; number == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    cause += "; raise `ulimit -n`, which is " + std::to_string(limit.rlim_cur);
  return Error{DTRUN_SYSTEM, std::string(action) + ": " + cause, -1};
}

Error Error::From(const dtrun_error& error, std::string_view context) {
  std::string text = error.message;
  if (text.empty()) text = StatusText(error.code);
  if (!context.empty()) text = std::string(context) + ": " + text;
  return Error{error.code, std::move(text), error.peer};
}

dtrun_status Error::CopyTo(dtrun_error* out) const {
  if (out == nullptr) return code;
  const std::uint32_t size = out->struct_size;
  if (size < sizeof(dtrun_error)) return code;  // an older caller's struct; version 0 has one size
  DTRUN_INIT(*out);
  out->struct_size = size;
  out->code = code;
  out->peer = peer;
  CopyCut(out->message, sizeof out->message, text);
  return code;
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
